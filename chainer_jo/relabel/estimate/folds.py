"""Stratified folds: every image is classified by networks that were trained without it and without
its duplicates, which are images whose features are nearly the same, such as copies in another size
or quality.

Near duplicates, in the distances of features:

    sample   = 200 random images
    usual    = median over the sample of the distance to the 5th nearest image (the nearest may be a
               copy; of every image, in a set with copies)
    far      = the same for the 25th; if far > 3 usual, the 5th is a copy as well: usual = far
    limit    = 0.2 usual
    crowded  = images near to one of the sample that has too many neighbours (within 0.9 limit)
    pairs    = pairs of the others within the limit in the 8 principal directions of the sample,
               then in all dimensions
    groups   = connected components of the pairs, except too large ones
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainer_jo import seeds
from chainer_jo.errors import UserError

NEAR_DISTANCE_RATIO = 0.2  # of the usual distance
USUAL_NEIGHBOUR, FAR_NEIGHBOUR = 5, 25  # ranks by distance
SAMPLED_IMAGES = 200
DIRECTIONS = 8
#: Mean number of images within the limit in these directions from which on all pairs are compared.
MAX_CANDIDATES_PER_IMAGE = 100
#: Share of all images. Features that more images have in common, empty ones say, tell nothing.
MAX_GROUP_SHARE = 0.05


def check_enough(given: np.ndarray, number: int) -> None:
    """Raises UserError for fewer than two images a fold, or no two images of a class."""
    n = len(given)
    if n < 2 * number:
        raise UserError(f"{n} images in {number} folds: expected at least two images each")
    if np.bincount(given).max() < 2:
        raise UserError(f"{n} images of {n} classes: expected two or more of some class")


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
    same; the next picture of a film is farther."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(features)
    most = max(2, int(MAX_GROUP_SHARE * n))
    content = np.ascontiguousarray(features).view(f"V{features[0].nbytes}").ravel()
    _, first, which = np.unique(content, return_index=True, return_inverse=True)
    pairs, rows = [np.stack([first[which], np.arange(n)], axis=1)], np.sort(first)
    if len(rows) > 2:
        pairs.append(rows[_near_pairs(features[rows], most)])
    i, j = np.concatenate(pairs).T
    graph = coo_matrix((np.ones(len(i)), (i, j)), (n, n))
    group = connected_components(graph, directed=False)[1]
    groups = np.split(np.argsort(group, kind="stable"), np.bincount(group).cumsum()[:-1])
    return sorted((each for each in groups if 1 < len(each) <= most), key=lambda each: each[0])


def _near_pairs(features: np.ndarray, most: int) -> np.ndarray:
    """Pairs (m, 2) of near rows, without most pairs of groups larger than ``most``; no two rows are
    equal."""
    centred = features - features.mean(axis=0)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(centred))[:SAMPLED_IMAGES]
    sample = centred[rows]
    squares = (sample**2).sum(axis=1)[:, None] + np.einsum("nd,nd->n", centred, centred)
    squares -= 2 * (sample @ centred.T)
    squares[np.arange(len(rows)), rows] = np.inf  # of an image from itself
    places = [min(k, len(centred) - 1) - 1 for k in (USUAL_NEIGHBOUR, FAR_NEIGHBOUR)]
    ordered = np.partition(squares, places, axis=1)[:, places].clip(0)
    usual, far = np.median(np.sqrt(ordered), axis=0)
    limit = NEAR_DISTANCE_RATIO * (far if far > 3 * usual else usual)
    # A crowd has as many pairs as its size squared: images near to one in it are left out.
    near = squares < (0.9 * limit) ** 2
    kept = np.flatnonzero(~near[near.sum(axis=1) >= most].any(axis=0))
    if len(kept) < 2:
        return np.empty((0, 2), np.int64)
    centred = centred[kept]
    directions = np.linalg.svd(sample, full_matrices=False)[2][:DIRECTIONS]
    from scipy.spatial import cKDTree

    tree = cKDTree(centred @ directions.T)
    candidates = tree.query_ball_point(sample @ directions.T, limit, return_length=True)
    if candidates.mean() <= MAX_CANDIDATES_PER_IMAGE:
        pairs = tree.query_pairs(limit, output_type="ndarray")
    else:  # features without such directions, whitened ones for example
        from sklearn.neighbors import radius_neighbors_graph

        i, j = radius_neighbors_graph(centred, 1.1 * limit, include_self=False).nonzero()
        pairs = np.stack([i, j], axis=1)[i < j]
    near_parts = [
        np.linalg.norm(centred[i] - centred[j], axis=1) < limit
        for i, j in (part.T for part in np.array_split(pairs, 1 + len(pairs) // 10_000))
    ]
    return kept[pairs[np.concatenate(near_parts)]]
