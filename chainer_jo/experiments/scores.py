"""Accuracies of a run that has ended, over all ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainer_jo.training.many_ranks import Ranks, counts

#: Lower bounds of the highest probability, by which Tables 12 and 13 divide soft labels.
CONFIDENCE_BOUNDS = (0.99, 0.95, 0.9, 0.0)


def of_epochs(log: Sequence[dict], **epochs: int) -> dict[str, dict]:
    """Accuracies in [0, 1] as they were logged, at each of the named epochs, counted from 1."""
    keys = ("epoch", "validation", "test", "recovery")
    return {
        name: {key: log[epoch - 1][key] for key in keys if key in log[epoch - 1]}
        for name, epoch in epochs.items()
    }


def accuracy(predicted: np.ndarray, labels: np.ndarray, ranks: Ranks) -> float | None:
    """The share of right predictions (n,) among those whose label is known, if any is."""
    right, known = ranks.sum(counts(predicted, labels))
    return float(right / known) if known else None


def by_class(
    predicted: np.ndarray, labels: np.ndarray, classes: int, ranks: Ranks
) -> list[float | None]:
    """`accuracy` of the images of each class."""
    return [accuracy(predicted[labels == k], labels[labels == k], ranks) for k in range(classes)]


def confidence(labels: np.ndarray, true_labels: np.ndarray, ranks: Ranks) -> list[dict]:
    """Tables 12 and 13: number and accuracy of labels (n, c) by their highest probability, highest
    first; of those whose true label is known."""
    known = true_labels >= 0
    highest = labels[known].max(axis=1)
    right = labels[known].argmax(axis=1) == true_labels[known]
    rows, upper = [], np.inf
    for lower in CONFIDENCE_BOUNDS:
        inside = (highest >= lower) & (highest < upper)
        number, of_them = ranks.sum(np.array([inside.sum(), right[inside].sum()]))
        rows.append({"from": lower, "number": int(number), "right": int(of_them)})
        upper = lower
    return rows
