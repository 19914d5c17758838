"""The parts that images are divided into, so that each is judged by networks that have not seen it;
and images that are the same, which are kept in one part."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from chainer_jo import files, seeds
from chainer_jo.errors import UserError

#: Two images are taken for the same if their features are nearer than this part of the usual
#: distance to another: the median, over SAMPLE images, of that to the NEIGHBOUR-th nearest. The
#: nearest may be a copy, of every image in a set with copies; if the BEYOND-th is more than three
#: times as far, so is the NEIGHBOUR-th, and the distance to the other counts.
NEAR, NEIGHBOUR, BEYOND, SAMPLE = 0.2, 5, 25, 200
#: Directions in which images have to be near before all dimensions are compared; where they let
#: more than this many images through for each, all are compared.
DIRECTIONS, CANDIDATES = 8, 100
#: Images that share their features with more than this part of all are no copies: such features,
#: empty ones for example, do not tell images apart.
LARGEST_GROUP = 0.05


def folds(
    given: np.ndarray, number: int, seed: int | Sequence[int], groups: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """The fold (n,) in [0, number) that each image is in; classes are divided as evenly as can be.

    Parameters
    ----------
    given : int (n,), the classes.
    seed : of the division; with more numbers, one of several of a seed.
    groups : rows of images that go where the first of them goes.

    Raises
    ------
    UserError
        if there are less than two folds, less than two images in each, one without any that is not
        the same as one elsewhere, or no two of a class.
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


def same(keys: Iterable[Hashable]) -> list[np.ndarray]:
    """Groups of images, int arrays of two rows or more, whose keys are equal."""
    rows: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return [np.array(group) for group in rows.values() if len(group) > 1]


def same_files(paths: Sequence[str], sizes: np.ndarray) -> list[np.ndarray]:
    """Groups of files with the same content; of one size only, they are read."""
    suspects = np.concatenate([*same(sizes.tolist()), np.empty(0, np.int64)])
    groups = same(files.digest(paths[row]) for row in suspects)
    return [np.sort(suspects[group]) for group in groups]


def near_duplicates(features: np.ndarray) -> list[np.ndarray]:
    """Groups of images whose features are the same or nearly, as `NEAR` says: a copy in another
    size or quality, say; the next picture of a film is not as near.

    Parameters
    ----------
    features : float32 (n, d), finite, scaled as networks see them.
    """
    n = len(features)
    most = max(2, int(LARGEST_GROUP * n))
    equal = same(map(bytes, features))
    single = np.ones(n, bool)
    for group in equal:
        single[group[1:]] = False
    rows = np.flatnonzero(single)
    pairs = [rows[_near_pairs(features[rows], most)]] if len(rows) > 2 else []
    pairs += [np.stack([np.broadcast_to(g[:1], len(g) - 1), g[1:]], axis=1) for g in equal]
    joined = np.concatenate([*pairs, np.empty((0, 2), np.int64)])
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(joined)), tuple(joined.T)), (n, n))
    found = [np.sort(group) for group in same(connected_components(graph, directed=False)[1])]
    return [group for group in found if len(group) <= most]


def _near_pairs(features: np.ndarray, most: int) -> np.ndarray:
    """Pairs (m, 2) of rows that are near, without most of those of larger groups than ``most``; no
    two rows are equal."""
    centred = features - features.mean(axis=0)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(centred))[:SAMPLE]
    sample = centred[rows]
    squares = (sample**2).sum(axis=1)[:, None] + np.einsum("nd,nd->n", centred, centred)
    squares -= 2 * (sample @ centred.T)
    squares[np.arange(len(rows)), rows] = np.inf  # of an image from itself
    places = [min(k, len(centred) - 1) - 1 for k in (NEIGHBOUR, BEYOND)]
    ordered = np.partition(squares, places, axis=1)[:, places].clip(0)
    usual, beyond = np.median(np.sqrt(ordered), axis=0)
    limit = NEAR * (beyond if beyond > 3 * usual else usual)
    # A crowd has as many pairs as its size squared: what is near to an image in one is left out.
    near = squares < (0.9 * limit) ** 2
    kept = np.flatnonzero(~near[near.sum(axis=1) >= most].any(axis=0))
    if len(kept) < 2:
        return np.empty((0, 2), np.int64)
    centred = centred[kept]
    directions = np.linalg.svd(sample, full_matrices=False)[2][:DIRECTIONS]
    from scipy.spatial import cKDTree

    tree = cKDTree(centred @ directions.T)
    through = tree.query_ball_point(sample @ directions.T, limit, return_length=True)
    if through.mean() <= CANDIDATES:
        pairs = tree.query_pairs(limit, output_type="ndarray")
    else:  # features without such directions, whitened ones for example
        pairs = _all_pairs(centred, 1.1 * limit)
    found = [
        np.linalg.norm(centred[i] - centred[j], axis=1) < limit
        for i, j in (part.T for part in np.array_split(pairs, 1 + len(pairs) // 10_000))
    ]
    return kept[pairs[np.concatenate(found)]]


def _all_pairs(points: np.ndarray, limit: float) -> np.ndarray:
    """Pairs (m, 2) of rows that are nearer than the limit, but for rounding; n x n x d steps."""
    half = np.einsum("nd,nd->n", points, points) / 2
    at_a_time = max(1, 2**24 // len(points))
    found = []
    for start in range(0, len(points), at_a_time):
        some = slice(start, start + at_a_time)
        gain = points[some] @ points[start:].T - half[some, None] - half[start:]
        i, j = np.nonzero(gain > -(limit**2) / 2)
        found.append(start + np.stack([i, j], axis=1)[i < j])
    return np.concatenate(found)
