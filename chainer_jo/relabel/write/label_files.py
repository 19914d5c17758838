"""Corrected labels of a user's images as files: ``labels.csv`` and ``soft_labels.npz``."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo import files
from chainer_jo.relabel.estimate.label_errors import COLUMNS as ESTIMATED
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.read import label_table

COLUMNS = ("path", *ESTIMATED, "reviewed")


def table(labels: CorrectedLabels) -> str:
    """``labels.csv``: a row for every image, in the order of the input, with all its columns. One
    with the name of one of `COLUMNS` gets the prefix ``given:``."""
    images, errors, new = labels.images, labels.errors, labels.new
    names, others = images.class_names, renamed(images.columns, COLUMNS)
    columns: dict[str, Iterable] = {
        "path": images.paths,
        "given": (names[k] for k in errors.given),
        "new": (names[k] for k in new),
        # Enough digits to sort by: the most certain errors have probabilities close to 0.
        "probability_given": (f"{p:.9g}" for p in errors.probability_given),
        "probability_new": (f"{p:.9g}" for p in errors.probabilities[np.arange(len(new)), new]),
        "changed": np.where(labels.changed, "yes", "no"),
        "wrong": np.where(errors.wrong, "yes", "no"),
        "rank": errors.rank,
        "network": (names[k] for k in errors.network),
        "reviewed": np.where(labels.reviewed, "yes", "no"),
    }
    out = io.StringIO()
    label_table.write(out, {**columns, **others})
    return out.getvalue()


def write_probabilities(labels: CorrectedLabels, path: Path) -> None:
    """``soft_labels.npz``, as docs/own-data-reference.md describes it."""
    errors = labels.errors
    arrays: dict[str, Any] = {
        "paths": np.array(list(labels.images.paths)),
        "labels": errors.probabilities.astype(np.float32),
        "class_names": np.array(labels.images.class_names),
        "network": errors.predicted.astype(np.float32),
        "transition": errors.transition,
        "share_wrong": np.float64(errors.share_wrong),
        "share_wrong_by_class": errors.share_wrong_by_class,
    }
    files.write(path, lambda file: np.savez_compressed(file, **arrays))


def renamed(columns: Mapping[str, list[str]], ours: Sequence[str]) -> dict[str, list[str]]:
    """Columns of the input without the names of ours or of each other, in any case: the prefix
    ``given:`` is added as often as needed."""
    taken, unique = {name.casefold() for name in ours}, {}
    for name, values in columns.items():
        while name.casefold() in taken:
            name = f"given:{name}"
        taken.add(name.casefold())
        unique[name] = values
    return unique
