"""Stratified folds: every image is judged by networks that were trained without it and without its
duplicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainer_jo import seeds
from chainer_jo.errors import UserError


def folds(
    given: np.ndarray, number: int, seed: int | Sequence[int], groups: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """Fold (n,) of each image, in [0, number); classes are divided as evenly as can be.

    Parameters
    ----------
    given : int (n,), the classes.
    seed : of the division; further numbers tell several divisions of one seed apart.
    groups : rows of duplicates, which go to the fold of the first of them.

    Raises UserError for fewer than two folds, fewer than two images a fold, fewer groups and single
    images than folds, or no two images of a class.
    """
    n = len(given)
    if number < 2 or n < 2 * number:
        raise UserError(
            f"{n} images in {number} folds: expected two or more folds of two or more each"
        )
    if np.bincount(given).max() < 2:
        raise UserError(f"{n} images of {n} classes: expected two or more of some class")
    first, *keys = np.atleast_1d(seed).tolist()
    order = seeds.generator(first, "split", *keys).permutation(n)
    order = order[np.argsort(given[order], kind="stable")]
    follows = np.zeros(n, bool)
    for group in groups:
        follows[group[1:]] = True
    order = order[~follows[order]]
    fold = np.empty(n, np.int64)
    fold[order] = np.arange(len(order)) % number
    for group in groups:
        fold[group] = fold[group[0]]
    if len(order) < number:
        raise UserError(f"{n} images, {len(order)} of them not the same: expected {number} or more")
    return fold
