"""Accuracy of predictions or labels, of the images whose label is known."""

from typing import Any


def accuracy(predicted: Any, labels: Any) -> float | None:
    """Accuracy of predictions (n,) against the known labels (not negative); None if none is known.
    Both arrays are on the same device.

    >>> import numpy as np
    >>> accuracy(np.array([0, 1, 1]), np.array([0, 0, -1]))
    0.5
    """
    is_known = labels >= 0
    is_right = (predicted == labels) & is_known
    known = int(is_known.sum())
    return int(is_right.sum()) / known if known else None
