"""Estimates the noise transition matrix T from noisy labels, by EM; no true label is needed.

The model is the one of forward correction, p(given j | x) = sum_k p(true k | x) T_kj, with
T_kj = p(given j | true k) the same for all images of class k (`method.noise` draws such noise).
With p(true | x) from a network and T estimated, Bayes' rule gives p(true | x, given). Several
labels of an image are independent given its true class.

``given`` is int (n,), one label an image, or (n, m), several labels an image with UNKNOWN (-1) in
empty places.
"""

from __future__ import annotations

import numpy as np

from chainer_jo.data.labelled_data import UNKNOWN

#: EM stops at an iteration that adds less to the mean log likelihood.
TOLERANCE = 1e-6
#: Lower bound of the arguments of logarithms and of divisors.
TINY = np.finfo(np.float64).tiny
#: Exponents that `calibrate` chooses from.
EXPONENTS = 0.25, 4.0
#: Share of wrong labels in the T that EM starts from.
ASSUMED_WRONG = 0.1
#: Images of the average class that are added to the counts of every row of the final T: a class of
#: a hundred images, seen by a weak network, says little about its row by itself.
PRIOR_IMAGES = 30
#: Share of the images that the network cannot tell apart whose number of label errors is kept by
#: half; see `beyond_confusion`.
CONFUSED = 0.3


def estimate_transition(
    probabilities: np.ndarray,
    given: np.ndarray,
    start: np.ndarray | None = None,
    iterations: int = 200,
    prior: np.ndarray | None = None,
) -> np.ndarray:
    """Maximum-likelihood T (c, c) float64 of the given labels, by EM.

    For fixed probabilities the log likelihood is concave in T.

    Parameters
    ----------
    probabilities : p(true | x), (n, c); of images whose given labels the network has not been
        trained on, or else T comes out with too few errors.
    start : T (c, c) to start from.
    prior : labels (c, c) that are added to every row's counts. By default one, spread evenly, so
        that a class that no image seems to be of keeps a row.
    """
    probabilities = np.asarray(probabilities)
    c = probabilities.shape[1]
    if start is None:
        start = (1 - ASSUMED_WRONG) * np.eye(c) + ASSUMED_WRONG / c
    return _maximise(*_by_given(probabilities, given), start, iterations, prior)[0]


def posterior(probabilities: np.ndarray, given: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """p(true | x, given), (n, c), proportional to p(true | x) T[true, given]; dtype and parameters
    as in `estimate_transition`."""
    # The last row, of index UNKNOWN: an empty place says nothing.
    evidence = np.vstack([transition.T, np.ones(len(transition))]).astype(probabilities.dtype)
    for column in given.reshape(len(given), -1).T:
        joint = probabilities * evidence[column]
        probabilities = joint / joint.sum(axis=1, keepdims=True)
    return probabilities


def majority(given: np.ndarray, probabilities: np.ndarray | None = None) -> np.ndarray:
    """The most frequent label of each image, int32 (n,); a single label is its own majority. Ties
    are decided by p(true | x), (n, c), or at random, by a fixed seed."""
    if given.ndim == 1:
        return given
    c = int(given.max()) + 1 if probabilities is None else probabilities.shape[1]
    votes = np.stack([(given == k).sum(axis=1) for k in range(c)], axis=1)
    if probabilities is None:
        probabilities = np.random.default_rng(0).random(votes.shape)
    tied = votes == votes.max(axis=1, keepdims=True)
    return np.where(tied, probabilities, -1).argmax(axis=1).astype(np.int32)


def calibrate(probabilities: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, c) to a power, which are surer if it is above 1, and T (c, c): exponent and
    T of the largest likelihood of given labels; then T is estimated again with `PRIOR_IMAGES` of
    the average class in every row, and `beyond_confusion` is kept. Both are float64.

    A network trained with the entropy term (eq. 12) is too sure, one trained on noisy labels alone
    not sure enough; how sure it should be follows from the labels of images it has not seen.
    """
    from scipy.optimize import minimize_scalar

    log_s = np.log(np.maximum(probabilities, 1e-12, dtype=np.float64))
    transition = estimate_transition(probabilities, given, iterations=20)

    def loss(log_exponent: float) -> float:
        nonlocal transition
        groups = _by_given(_power(log_s, np.exp(log_exponent)), given)
        transition, objective = _maximise(*groups, transition, 20)
        return -objective

    bounds = tuple(np.log(EXPONENTS))
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.03})
    s = _power(log_s, np.exp(best.x))
    start = estimate_transition(s, given, transition)
    right, c = float(s.mean(axis=0) @ np.diag(start)), len(start)
    average = np.full((c, c), (1 - right) / max(c - 1, 1))
    np.fill_diagonal(average, right)
    shared = estimate_transition(s, given, start, prior=PRIOR_IMAGES * average)
    return s, beyond_confusion(s, shared)


def by_column(
    probabilities: np.ndarray, votes: np.ndarray, transition: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Labels (n, m) as columns of T (c, m c) float64, which holds a T for each column of labels,
    as the columns may be people who differ; estimated with `PRIOR_IMAGES` of the common T in every
    row."""
    c, m = len(transition), votes.shape[1]
    symbols = np.where(votes == UNKNOWN, UNKNOWN, votes + c * np.arange(m))
    start = np.tile(transition, m)
    groups = _by_given(probabilities, symbols)
    return symbols, _maximise(*groups, start, 200, PRIOR_IMAGES * start)[0]


def beyond_confusion(probabilities: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """T (c, c) whose errors exceed the network's confusions; the other errors are spread evenly.

    EM takes some disagreements of network and labels for label errors. Where errors are rare, most
    off-diagonal cells hold nothing else, and such a T ranks worse than equal errors everywhere. Of
    J = images of class k that T says are called j, a cell keeps the part J^2 / (J^2 + (0.3 C)^2),
    with C = sum_i s_ik s_ij, the images of which the network cannot say whether they are k or j.
    1 / (c - 1) of the lost errors is spread over their row, the rest over all rows. With two
    classes, T stays as it is.
    """
    c = len(transition)
    images, apart = probabilities.sum(axis=0)[:, None], ~np.eye(c, dtype=bool)
    errors = images * transition
    confused = CONFUSED * (probabilities.T @ probabilities)
    kept = errors**2 / np.maximum(errors**2 + confused**2, TINY)
    lost = np.where(apart, (1 - kept) * transition, 0)
    own, all_rows = lost.sum(axis=1, keepdims=True), (images * lost).sum() / images.sum()
    spread = (own + (c - 2) * all_rows) / max(c - 1, 1) ** 2
    new = transition - lost + spread * apart
    return new / new.sum(axis=1, keepdims=True)


def _power(log_s: np.ndarray, exponent: float) -> np.ndarray:
    powers = exponent * log_s
    powers = np.exp(powers - powers.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _by_given(
    probabilities: np.ndarray, given: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The different sets of labels that images have, int (1 to m,) each, and the probabilities of
    the images of each set, float64 (images, c)."""
    sets, which = np.arange(probabilities.shape[1])[:, None], given
    if given.ndim == 2:
        sets, which = np.unique(np.sort(given, axis=1), axis=0, return_inverse=True)
    # Small integers are sorted by counting, ten times as fast.
    order = np.argsort(which.astype(np.min_scalar_type(len(sets))), kind="stable")
    ends = np.bincount(which, minlength=len(sets)).cumsum()[:-1]
    ordered = probabilities[order].astype(np.float64)
    return [each[each != UNKNOWN] for each in sets], np.split(ordered, ends)


def _maximise(
    sets: list[np.ndarray],
    groups: list[np.ndarray],
    transition: np.ndarray,
    iterations: int,
    prior: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Runs EM; returns T and the objective before its last step: the mean log likelihood, with the
    labels of the prior."""
    n, c = sum(map(len, groups)), len(transition)
    prior = np.full((c, c), 1 / c) if prior is None else prior
    last = -np.inf
    for _ in range(iterations):
        counts = prior.copy()
        objective = float((prior * np.log(np.maximum(transition, TINY))).sum()) / n
        for labels, s in zip(sets, groups, strict=True):
            evidence = transition[:, labels].prod(axis=1)
            explained = np.maximum(s @ evidence, TINY)
            true = evidence * (s.T @ (1 / explained))
            for j in labels:
                counts[:, j] += true
            objective += np.log(explained).sum() / n
        columns = counts.reshape(c, -1, c)  # one T, or T of each column
        transition = (columns / columns.sum(axis=2, keepdims=True)).reshape(counts.shape)
        if objective - last < TOLERANCE:
            break
        last = objective
    return transition, objective
