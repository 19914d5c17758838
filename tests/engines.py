"""The providers that a test of functions runs on: none, and oneDNN's where it works."""

import pytest

from chainer_jo.errors import UserError
from chainer_jo.functions import providers

#: Relative norm of the error that is allowed, by name of the engine.
TOLERANCE = {"stock": 1e-5, "fp32": 1e-5, "mixed": 2e-2}


def provider(name):
    """None for "stock", oneDNN's for "fp32" and "mixed"; skips the test where there is none."""
    if name == "stock":
        return None
    try:
        return providers.choose("cpu", name, "onednn")
    except UserError as error:
        pytest.skip(str(error))
