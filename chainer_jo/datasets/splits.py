"""The training images divided into those trained on and those held back for validation."""

from __future__ import annotations

import numpy as np

from chainer_jo.errors import UserError


def split(
    labels: np.ndarray,
    num_classes: int,
    rng: np.random.Generator,
    validation_fraction: float = 0.1,
) -> tuple[np.ndarray, np.ndarray]:
    """Hold back a random part of every class (Section 5.1: 10 % of the training data).

    Parameters
    ----------
    labels : int, (n,), the true labels, all in [0, num_classes).
    validation_fraction : of each class, rounded to whole images (CIFAR-10: 500 of 5,000).

    Returns
    -------
    train, validation : int64 index arrays, sorted, disjoint, together 0..n-1.

    Raises
    ------
    UserError
        if the fraction is not between 0 and 1, or leaves a class without an image on either side.
    """
    if not 0 < validation_fraction < 1:
        raise UserError(f"validation fraction {validation_fraction}: expected a number in (0, 1)")
    held_back = np.zeros(len(labels), dtype=bool)
    for k in range(num_classes):
        members = np.flatnonzero(labels == k)
        count = round(validation_fraction * len(members))
        if not 1 <= count < len(members):
            raise UserError(
                f"class {k} has {len(members)} images, {count} of them for validation (fraction "
                f"{validation_fraction}): expected at least one for validation and one for training"
            )
        held_back[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~held_back), np.flatnonzero(held_back)
