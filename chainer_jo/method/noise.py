"""Label noise put into true labels, as Section 5.1 defines it, and its transition matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chainer_jo.errors import UserError

# Class name: the name it is mistaken for. CIFAR-10: Section 5.1 of the paper. Digits: what
# Patrini et al. (CVPR 2017), whom the paper follows, use for MNIST.
_MISTAKEN_FOR = (
    {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"},
    {"7": "1", "2": "7", "5": "6", "6": "5", "3": "8"},
)


def transitions_of(class_names: Sequence[str]) -> dict[int, int]:
    """The asymmetric noise known for these classes, {true class: the class it is mistaken for}.

    Raises UserError for classes for which none is defined.
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
    """A copy of `labels` with ceil(rate * n) random ones drawn anew, uniformly from all classes.

    The true class can come up again, so about rate * (c - 1) / c of the labels end up wrong.
    """
    _check_rate(rate)
    noisy = labels.copy()
    chosen = rng.permutation(len(labels))[: _count(rate, len(labels))]
    noisy[chosen] = rng.integers(num_classes, size=len(chosen))
    return noisy


def asymmetric(
    labels: np.ndarray, rate: float, transitions: Mapping[int, int], rng: np.random.Generator
) -> np.ndarray:
    """A copy of `labels` with a fraction `rate` (rounded up) of each source class moved on.

    All moves start from the true labels: with cat > dog and dog > cat no image is moved twice.
    """
    _check_rate(rate)
    noisy = labels.copy()
    for source, target in sorted(transitions.items()):
        members = rng.permutation(np.flatnonzero(labels == source))
        noisy[members[: _count(rate, len(members))]] = target
    return noisy


def transition_matrix(
    rate: float, num_classes: int, transitions: Mapping[int, int] | None = None
) -> np.ndarray:
    """The matrix T, float64 (c, c), T[i, j] = probability that an image of class i carries label j.

    Of `symmetric` noise, T = (1 - rate) I + rate / c, or with `transitions` of `asymmetric` noise.
    """
    identity = np.eye(num_classes)
    if transitions is None:
        return (1 - rate) * identity + rate / num_classes
    matrix = identity.copy()
    for source, target in transitions.items():
        matrix[source] = (1 - rate) * identity[source] + rate * identity[target]
    return matrix


@dataclass(frozen=True)
class NoiseModel:
    """How labels become wrong at a rate r in [0, 1].

    Parameters
    ----------
    short : what names of runs call it: ``sn`` as in ``sn30``.
    draw : (true labels (n,) int32, r, class names, generator) to noisy labels (n,) int32.
    matrix : (r, class names) to T float64 (c, c), T[i, j] = probability that an image of class i
        carries label j; what forward correction and CNN-CRF are told.
    """

    short: str
    draw: Callable[[np.ndarray, float, Sequence[str], np.random.Generator], np.ndarray]
    matrix: Callable[[float, Sequence[str]], np.ndarray]


#: Noise models by name; the name becomes part of the description of a run. Add your own under a new
#: name.
MODELS = {
    "symmetric": NoiseModel(
        "sn",
        lambda labels, rate, names, rng: symmetric(labels, rate, len(names), rng),
        lambda rate, names: transition_matrix(rate, len(names)),
    ),
    "asymmetric": NoiseModel(
        "an",
        lambda labels, rate, names, rng: asymmetric(labels, rate, transitions_of(names), rng),
        lambda rate, names: transition_matrix(rate, len(names), transitions_of(names)),
    ),
}


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise UserError(f"noise rate {rate}: expected a number in [0, 1]")


def _count(rate: float, n: int) -> int:
    """ceil(rate * n), safe from rounding: 0.07 * 100 is a little over 7 in binary."""
    return math.ceil(round(rate * n, 6))
