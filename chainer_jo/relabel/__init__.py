"""Finds and corrects wrong labels of a user's images: Python functions and `chainer-jo relabel`.

    from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel

Files, in the order of what a user does; no other subpackage imports them:

read    class_folders, label_table, labelled_images, own_data (decoded); feature_table (features or
        probabilities); in Python arrays, classifier
judge   by_images (presets), by_features (training, features, feature_network, feature_scaling,
        posterior_labels), both with folds, near_duplicates; label_noise (T), label_errors
write   corrected_labels, results_folder (labels.csv, soft_labels.npz), corrected_set (--apply),
        trained_network (model.npz)
show    outcome (terminal), report (report.html)

`cli` is the entry point; `command`, `predict` and `example` are its commands, `flags` and `limits`
their settings.
"""

import importlib
from typing import Any

#: Modules of the public names, imported on first use: Chainer takes a second.
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
