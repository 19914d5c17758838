"""Symmetric (eq. 13) and asymmetric label noise (Section 5.1), and transition matrices T.

A change draws other labels, and so changes every number; another noise is an entry of
`label_sources.SOURCES`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from chainer_jo.errors import Limits, UserError

#: Noise rates r.
RATES = Limits(float, 0, 1)
# True class: noisy class. CIFAR-10 as in Section 5.1; digits as in Patrini et al. (CVPR 2017), whom
# the paper follows, for MNIST.
_MISTAKEN_FOR = (
    {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"},
    {"7": "1", "2": "7", "5": "6", "6": "5", "3": "8"},
)


def transitions_of(class_names: Sequence[str]) -> dict[int, int]:
    """Asymmetric noise of these classes: {true class: noisy class} (Section 5.1).

    Raises UserError for classes other than CIFAR-10's and the digits.

    >>> transitions_of("0123456789")
    {7: 1, 2: 7, 5: 6, 6: 5, 3: 8}
    """
    index = {name: k for k, name in enumerate(class_names)}
    for mapping in _MISTAKEN_FOR:
        if index.keys() >= mapping.keys() | set(mapping.values()):
            return {index[source]: index[target] for source, target in mapping.items()}
    raise UserError(
        f"asymmetric noise for the classes {', '.join(class_names)}: "
        "expected the classes of CIFAR-10 or the digits 0 to 9"
    )


def symmetric(
    labels: np.ndarray, rate: float, num_classes: int, rng: np.random.Generator
) -> np.ndarray:
    """Symmetric noise (eq. 13): a copy of `labels` with ceil(rate * n) redrawn from all c classes.

    A redrawn label can be the true one: about rate * (c - 1) / c of the labels become wrong.

    >>> noisy = symmetric(np.zeros(1000, np.int32), 0.5, 10, np.random.default_rng(0))
    >>> bool(500 <= (noisy == 0).sum() < 600)
    True
    """
    RATES.check("noise rate", rate)
    noisy = labels.copy()
    chosen = rng.permutation(len(labels))[: _count(rate, len(labels))]
    noisy[chosen] = rng.integers(num_classes, size=len(chosen))
    return noisy


def asymmetric(
    labels: np.ndarray, rate: float, transitions: Mapping[int, int], rng: np.random.Generator
) -> np.ndarray:
    """Asymmetric noise: a copy of `labels` with a fraction `rate` (rounded up) of each true class
    changed to its class in `transitions`. No label changes twice, not even cat to dog to cat.

    >>> asymmetric(np.array([2, 2, 7, 0]), 1.0, {7: 1, 2: 7}, np.random.default_rng(0))
    array([7, 7, 1, 0])
    """
    RATES.check("noise rate", rate)
    noisy = labels.copy()
    for source, target in sorted(transitions.items()):
        members = rng.permutation(np.flatnonzero(labels == source))
        noisy[members[: _count(rate, len(members))]] = target
    return noisy


def transition_matrix(
    rate: float, num_classes: int, transitions: Mapping[int, int] | None = None
) -> np.ndarray:
    """Noise transition matrix T, float64 (c, c), T_ij = p(noisy j | true i): with `transitions` of
    `asymmetric` noise, otherwise of `symmetric` noise, T = (1 - rate) I + rate / c.

    >>> transition_matrix(0.25, 2, {1: 0})
    array([[1.  , 0.  ],
           [0.25, 0.75]])
    """
    identity = np.eye(num_classes)
    if transitions is None:
        return (1 - rate) * identity + rate / num_classes
    matrix = identity.copy()
    for source, target in transitions.items():
        matrix[source] = (1 - rate) * identity[source] + rate * identity[target]
    return matrix


def observed_matrix(labels: np.ndarray, noisy: np.ndarray, num_classes: int) -> np.ndarray:
    """Frequencies of the `noisy` labels of each true class, float64 (c, c); each class is needed.

    >>> observed_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    counts = np.bincount(labels * num_classes + noisy, minlength=num_classes**2)
    counts = counts.reshape(num_classes, num_classes)
    return counts / counts.sum(axis=1, keepdims=True)


def by_class(labels: np.ndarray, matrix: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noisy labels, int32 (n,), each drawn from its true class's row of T (c, c)."""
    thresholds = rng.random((len(labels), 1))
    return (matrix.cumsum(axis=1)[labels, :-1] < thresholds).sum(axis=1).astype(np.int32)


def _count(rate: float, n: int) -> int:
    """ceil(rate * n), safe from rounding: 0.07 * 100 is a little over 7 in binary."""
    return math.ceil(round(rate * n, 6))
