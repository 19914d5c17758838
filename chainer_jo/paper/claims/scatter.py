"""When a difference between trials decides: the one rule that all claims share.

The mean of n trials is known up to its standard error, sqrt(variance / n), with the unbiased
variance over the trials; the error of a difference of two means is Welch's, sqrt(error_a^2 +
error_b^2). A difference decides only where it is larger than twice that error, which needs two
trials on either side. Twice the error is called the scatter, and it is what "±" shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import mean, variance

NOTABLE = 2.0
"""Percentage points: a smaller loss of accuracy still counts as keeping it."""


@dataclass(frozen=True)
class Estimate:
    """A mean over trials and its scatter: twice its standard error, 0 for a given number."""

    mean: float
    scatter: float = 0.0

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.mean - other.mean, hypot(self.scatter, other.scatter))

    def __mul__(self, factor: float) -> "Estimate":
        return Estimate(self.mean * factor, self.scatter * abs(factor))

    def __abs__(self) -> "Estimate":
        return Estimate(abs(self.mean), self.scatter)

    def __str__(self) -> str:
        return _short(self.mean) + (f" ± {_short(self.scatter)}" if self.scatter else "")


def _short(number: float) -> str:
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2g}"


@dataclass(frozen=True)
class Finding:
    """One comparison: what with what, the numbers, whether they bear it out (None: undecided)."""

    what: str
    numbers: str
    outcome: bool | None


def estimate(trials: Sequence[float]) -> Estimate | None:
    """The mean of `trials` with its scatter; None for fewer than two, which have no scatter."""
    if len(trials) < 2:
        return None
    return Estimate(mean(trials), 2 * sqrt(variance(trials) / len(trials)))


def exceeds(what: str, a: Estimate | None, b: Estimate | None, by: float = 0.0) -> Finding:
    """Whether `a` is more than `by` above `b`; undecided within the scatter of their difference.

    With a negative `by`: whether `a` is at most that much below `b`.
    """
    if a is None or b is None:
        return _missing(what, a, b)
    distance = a - b - Estimate(by)
    outcome = distance.mean > 0 if abs(distance.mean) > distance.scatter else None
    return Finding(what, f"{a} against {b}", outcome)


def keeps_up(what: str, a: Estimate | None, b: Estimate | None) -> Finding:
    """Whether `a` is not below `b` beyond their scatter.

    Undecided where the scatter is so wide that a `NOTABLE` difference could hide in it.
    """
    if a is None or b is None:
        return _missing(what, a, b)
    distance = a - b
    if distance.mean < -distance.scatter:
        outcome = False
    else:
        outcome = True if distance.scatter <= NOTABLE else None
    return Finding(what, f"{a} against {b}", outcome)


def _missing(what: str, *estimates: Estimate | None) -> Finding:
    shown = " against ".join("too few trials" if e is None else str(e) for e in estimates)
    return Finding(what, shown, None)
