"""One's own images with wrong labels: Python functions, and what `chainer-jo` does. Nothing outside
imports it.

    from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel
"""

import importlib
from typing import Any

#: Where what is meant for everybody is; taken in when it is asked for, as Chainer takes a second.
_PUBLIC = {
    "LabelErrors": "label_errors",
    "RelabelClassifier": "classifier",
    "find_label_errors": "arrays",
    "relabel": "arrays",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
