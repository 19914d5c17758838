"""Finds and corrects wrong labels of a user's images: Python functions and `chainer-jo relabel`.

    from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel

Folders, in the order of their use; each imports those before it, except that `estimate` imports
nothing of `read`, and `show` nothing of `write`:

read      images and noisy labels (class folders, tars, tables); features, given or computed
estimate  out-of-fold probabilities by features; noise transition matrix T; label errors
outcome   corrected labels, the network trained on them, accuracies, the audit
write     labels.csv, soft_labels.npz, data sets with corrected labels, model.npz
show      the outcome in the terminal, and report.html

`arrays` and `classifier` are the Python functions. `by_features` joins read, estimate and outcome.
`cli` is the entry point; `command` (relabel, by `correction`), `predict`, `extract` (features) and
`example` are its commands. No other subpackage imports `relabel`.
"""

import importlib
from typing import Any

from chainer_jo import _compat  # noqa: F401  (see there)

#: Modules of the public names, imported on first use: Chainer takes a second.
_PUBLIC = {
    "LabelErrors": "estimate.label_errors",
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
