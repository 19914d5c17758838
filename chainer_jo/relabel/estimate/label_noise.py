"""Estimates the noise transition matrix T from noisy labels, by EM; no true label is needed.

The model is the one of forward correction, p(given j | x) = sum_k p(true k | x) T_kj, with
T_kj = p(given j | true k) the same for all images of class k (`method.noise` draws such noise).
With p(true | x) from a network and T estimated, Bayes' rule gives p(true | x, given). Several
labels of an image are independent given its true class. Given labels that differ from predictions
fit two `explanations`: errors of the network, and errors of labels.

``given`` is int (n,), one label an image, or (n, m), several labels an image with UNKNOWN (-1) in
empty places.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo.data.labelled_data import UNKNOWN

#: EM stops at an iteration that adds less to the mean log likelihood.
TOLERANCE = 1e-6
#: Lower bound of the arguments of logarithms and of divisors.
TINY = np.finfo(np.float64).tiny
#: Share of wrong labels in the T that EM starts from.
ASSUMED_WRONG = 0.1
#: Images of the average class added to the counts of every row: few images say little about theirs.
PRIOR_IMAGES = 30
#: Of `explanations`: penalty on weights (precision of a normal prior), least probability, most
#: images, steps of L-BFGS, and steps of EM for each.
RIDGE, LEAST_PROBABILITY, MAX_IMAGES, STEPS, EM_STEPS = 200, 1e-6, 10_000, 50, 5
#: Exponents that are tried; and how much surer than given labels say a network may be.
EXPONENTS, SURER = (0.25, 4.0), 1.5


def estimate_transition(
    probabilities: np.ndarray,
    given: np.ndarray,
    start: np.ndarray | None = None,
    iterations: int = 200,
) -> np.ndarray:
    """Maximum-likelihood T (c, c) float64 of the given labels, by EM. For fixed probabilities the
    log likelihood is concave in T. One label, spread evenly, is added to every row of counts.

    Parameters
    ----------
    probabilities : p(true | x), (n, c); of images whose given labels the network has not been
        trained on, or else T comes out with too few errors.
    start : T (c, c) to start from.
    """
    probabilities = np.asarray(probabilities)
    c = probabilities.shape[1]
    if start is None:
        start = (1 - ASSUMED_WRONG) * np.eye(c) + ASSUMED_WRONG / c
    return _maximise(*_by_given(probabilities, given), start, iterations)[0]


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


def explanations(probabilities: np.ndarray, given: np.ndarray) -> list[tuple]:
    """Two pairs of p(true | x), (n, c), and T (c, c), float64, from a network's probabilities s.

    1. softmax(W log s + b) corrects a network that confuses classes. W, b and T have the largest
       likelihood of given labels, less RIDGE / 2 |(W - a I, b / 13.8)|^2 for the best a; then
       `own_rates`.
    2. A network that is right has s to the power of 1, or the nearest from a to SURER a. T, halfway
       between `own_rates` and even errors, has all errors.

    Confusions vanish where the network is sure, errors of labels do not. The likelihood has several
    maxima: the search begins at the best W = a I.
    """
    from scipy.optimize import minimize, minimize_scalar
    from scipy.special import softmax

    if given.ndim == 2:  # the order of columns, and empty ones, change no bit
        given = np.sort(given, axis=1)
        given = given[:, (given != UNKNOWN).any(axis=0)]
    n, c = probabilities.shape
    # A last column of log LEAST_PROBABILITY, -13.8, makes a constant, whose weights are -b / 13.8.
    log_s = np.log(np.maximum(np.insert(probabilities, c, 0, axis=1), LEAST_PROBABILITY))
    rows = np.random.default_rng(0).permutation(n)[:MAX_IMAGES]
    x, labels, same, prior = log_s[rows], given[rows], np.eye(c + 1, c), None
    transition = estimate_transition(probabilities, given)

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal transition
        weights = point.reshape(c + 1, c)
        s = softmax(x @ weights, axis=1)
        transition, objective = _maximise(*_by_given(s, labels), transition, EM_STEPS, prior)
        beyond = weights - np.trace(weights) / c * same
        slope = x.T @ (s - posterior(s, labels, transition)) + RIDGE * beyond
        return RIDGE / 2 * (beyond**2).sum() - len(x) * objective, slope.ravel()

    with threadpool_limits(limits=1):  # the same bits on any number of threads
        a = minimize_scalar(lambda a: loss(a * same)[0], bounds=EXPONENTS, method="bounded").x
        prior = PRIOR_IMAGES * even_errors(softmax(a * x[:, :c], axis=1), transition)
        options = {"maxiter": STEPS, "maxcor": 30}
        best = minimize(loss, (a * same).ravel(), jac=True, method="L-BFGS-B", options=options)
        s = softmax(log_s @ best.x.reshape(c + 1, c), axis=1)
        surer = softmax(np.clip(1, a, SURER * a) * log_s[:, :c], axis=1)
        every = estimate_transition(surer, given)
        every = (own_rates(surer, given, every) + even_errors(surer, every)) / 2
        return [(s, own_rates(s, given, transition)), (surer, every)]


def even_errors(probabilities: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """T (c, c) with as many errors, the same for all pairs of classes."""
    right, c = probabilities.mean(axis=0) @ np.diag(transition), len(transition)
    return np.where(np.eye(c, dtype=bool), right, (1 - right) / max(c - 1, 1))


def own_rates(probabilities: np.ndarray, given: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """T (c, c) with even errors, and more errors of a pair of classes if its own rate explains more
    labels than half the logarithm of their number (BIC); by EM, which begins at ``transition``."""
    c = len(transition)
    labels = (given.reshape(len(given), -1, 1) == np.arange(c)).sum(axis=1)
    rate, apart = even_errors(probabilities, transition)[0, -1], 1 - np.eye(c)
    for _ in range(STEPS):
        counts = posterior(probabilities, given, transition).T @ labels
        even = apart * counts * np.minimum(rate / np.maximum(transition, TINY), 1)
        rate = (even.sum() + 0.5) / ((c - 1) * labels.sum())
        further = np.maximum(counts - even - np.log(labels.sum()) / 2, 0)
        errors = apart * (rate + further / np.maximum(counts.sum(axis=1, keepdims=True), TINY))
        transition = errors + np.diag(np.maximum(1 - errors.sum(axis=1), TINY))
        transition /= transition.sum(axis=1, keepdims=True)
    return transition


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
