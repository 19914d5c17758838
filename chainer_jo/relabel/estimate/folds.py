"""Stratified folds: every image is classified by networks that were trained without it and without
its duplicates, which are images whose features are nearly the same, such as copies in another size
or quality.

Near duplicates, in the distances of features:

    sample   = 200 random images
    usual    = median over the sample of the distance to the 5th nearest image (the nearest may be a
               copy; of every image, in a set with copies)
    far      = the same for the 25th; if far > 3 usual, the 5th is a copy as well: usual = far
    limit    = 0.2 usual
    pairs    = pairs within the limit that are at most three places apart, along a random direction,
               in a cell of one of 48 random grids
    groups   = connected components of the pairs, except too large ones

The number of steps is proportional to n log n, also for crowds. Cells are 0.8 usual wide, in so
many random directions that images at the usual distance are in one cell once in n times. Pairs half
the limit apart are all found; of a million images, 19 of 20 pairs at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from chainer_jo import seeds
from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate.features import parts

NEAR_DISTANCE_RATIO = 0.2  # of the usual distance
USUAL_NEIGHBOUR, FAR_NEIGHBOUR = 5, 25  # ranks by distance
SAMPLED_IMAGES = 200
#: Random grids, and the width of their cells in usual distances. Images at the usual distance are
#: in one interval of a direction with probability SAME_INTERVAL.
GRIDS, WIDTH, SAME_INTERVAL = 48, 0.8, 0.3
#: Share of all images. Features that more images have in common, empty ones say, tell nothing.
MAX_GROUP_SHARE = 0.05


def check_enough(given: np.ndarray, number: int, where: str = "") -> None:
    """Raises UserError, with ``where`` first, unless every fold gets two images and some class has
    two."""
    n = len(given)
    if n < 2 * number:
        raise UserError(f"{where}{n} images in {number} folds: expected at least two images each")
    if np.bincount(given).max() < 2:
        raise UserError(f"{where}{n} images of {n} classes: expected two or more of some class")


def folds(
    given: np.ndarray, number: int, seed: int | Sequence[int], groups: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """Fold (n,) of each image, in [0, number); classes are divided as evenly as can be.

    Parameters
    ----------
    seed : of the division; further numbers tell several divisions of one seed apart.
    groups : rows of duplicates, which go to the fold of the first of them.

    Raises UserError as `check_enough` does, or for fewer groups and single images than folds.
    """
    check_enough(given, number)
    n = len(given)
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
        raise UserError(f"only {len(order)} different images, expected {number} (one a fold)")
    return fold


def near_duplicates(features: np.ndarray) -> list[np.ndarray]:
    """Groups of images whose features, float32 (n, d) scaled as networks see them, are nearly the
    same; the next picture of a film is farther. Takes little more memory than the features."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(features)
    _, first, which = np.unique(_digests(features), return_index=True, return_inverse=True)
    group = first[which]
    for pairs in _near_pairs(features, np.sort(first)):
        i, j = group[pairs.T]
        graph = coo_matrix((np.ones(len(i), bool), (i, j)), (n, n))
        group = connected_components(graph, directed=False)[1][group]
    sizes = np.bincount(group)[group]
    members = np.flatnonzero((sizes > 1) & (sizes <= max(2, MAX_GROUP_SHARE * n)))
    members = members[np.argsort(group[members], kind="stable")]
    groups = np.split(members, np.flatnonzero(np.diff(group[members])) + 1)
    return sorted((each for each in groups if len(each)), key=lambda each: each[0])


def _digests(features: np.ndarray) -> np.ndarray:
    """Numbers uint64 (n,), equal for rows with the same bits; for others once in 2**64 pairs."""
    words = np.ascontiguousarray(features).view(np.uint32)
    factors = np.random.default_rng(0).integers(2**64, size=words.shape[1], dtype=np.uint64) | 1
    return np.concatenate([words[part].astype(np.uint64) @ factors for part in parts(len(words))])


def _near_pairs(features: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Pairs (m, 2) of near ones among these rows, all different, grid by grid."""
    if len(rows) < 3:
        return
    drawn = np.random.default_rng(0).permutation(len(rows))[:SAMPLED_IMAGES]
    norms, nearest = np.einsum("nd,nd->n", features, features)[rows], []
    places = [min(k, len(rows) - 1) - 1 for k in (USUAL_NEIGHBOUR, FAR_NEIGHBOUR)]
    for some in np.array_split(drawn, 20):
        products = (features @ features[rows[some]].T)[rows].T
        squares = norms[some, None] + norms - 2 * products
        squares[np.arange(len(some)), some] = np.inf  # of an image from itself
        nearest.append(np.partition(squares, places)[:, places])
    usual, far = np.median(np.sqrt(np.concatenate(nearest).clip(0)), axis=0)
    usual = far if far > 3 * usual else usual
    limit = NEAR_DISTANCE_RATIO * usual
    for pairs in _neighbours_in_cells(features, rows, WIDTH * usual) if limit else ():
        near = []
        for i, j in (pairs[part].T for part in parts(len(pairs))):
            near.append(np.linalg.norm(features[i] - features[j], axis=1) < limit)
        yield pairs[np.concatenate([np.empty(0, bool), *near])]


def _neighbours_in_cells(
    features: np.ndarray, rows: np.ndarray, width: float
) -> Iterator[np.ndarray]:
    """Pairs (m, 2) of these rows that are at most three places apart in a cell of a random grid,
    ordered along a random direction, grid by grid."""
    rng = np.random.default_rng(0)
    number = max(1, round(np.log(len(rows)) / -np.log(SAME_INTERVAL)))
    for _ in range(GRIDS):
        directions = rng.normal(size=(features.shape[1], number + 1)).astype(np.float32)
        along = (features @ directions)[rows]
        cells = np.floor(along[:, 1:] / np.float32(width) + rng.random(number, np.float32))
        cell = _digests(cells)
        order = np.lexsort((along[:, 0], cell))
        pairs = np.concatenate([np.stack([order[:-k], order[k:]], axis=1) for k in (1, 2, 3)])
        yield rows[pairs[cell[pairs[:, 0]] == cell[pairs[:, 1]]]]
