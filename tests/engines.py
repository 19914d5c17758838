"""The backends that a test of functions runs on: none, and oneDNN's where it works."""

import pytest

from chainer_jo.engine.backend import choose_backend
from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.interface import Unavailable
from chainer_jo.errors import UserError

#: Relative norm of the error that is allowed, by name of the engine.
TOLERANCE = {"stock": 1e-5, "fp32": 1e-5, "mixed": 2e-2}


def backend(name):
    """None for "stock", oneDNN's for "fp32" and "mixed"; skips the test where there is none."""
    if name == "stock":
        return None
    try:
        return choose_backend("cpu", name, "onednn")
    except UserError as error:
        pytest.skip(str(error))


def library():
    """oneDNN; skips the test where there is none."""
    try:
        return dnnl.find()
    except Unavailable as error:
        pytest.skip(str(error))
