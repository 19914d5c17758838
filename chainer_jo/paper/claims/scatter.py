"""When a difference decides: the one rule that all claims share.

Runs of one trial have one seed: the same validation split and noisy labels of each kind, and the
same initial weights and order of the images in each step. What is compared is therefore subtracted
trial by trial, over the trials that both sides have: scatter that both share cancels.

The mean of n such differences is known up to t * s / sqrt(n): s is their standard deviation
(unbiased), t the two-sided 95 % quantile of Student's distribution with n - 1 degrees of freedom.
That is called the scatter, and it is what "±" shows, also after the mean of one side, which is over
all trials of that side. A difference decides only where it is larger than its scatter, which needs
two trials or more.

Student's t takes the differences to be normal. Accuracies are counted in images, though, and a few
differences can be equal by chance; they then decide with a scatter of 0, which "± 0" shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

from scipy.special import stdtrit

NOTABLE = 2.0
"""Percentage points: a smaller loss of accuracy still counts as keeping it."""

CONFIDENCE = 0.95
"""The probability that a mean is known up to its scatter."""


@dataclass(frozen=True)
class Estimate:
    """A number per trial, by the trial, of which the mean is asked for; or one number for all.

    Arithmetic goes trial by trial, over the trials that every operand has. A number for all trials,
    such as one that the paper quotes, goes with any of them and has no scatter.
    """

    numbers: Mapping[int, float] | float

    @property
    def mean(self) -> float | None:
        """Over the trials; None without any."""
        if not isinstance(self.numbers, Mapping):
            return self.numbers
        return fmean(self.numbers.values()) if self.numbers else None

    @property
    def scatter(self) -> float | None:
        """How far off the mean may be (see the module); None for fewer than two trials."""
        if not isinstance(self.numbers, Mapping):
            return 0.0
        n = len(self.numbers)
        if n < 2:
            return None
        quantile = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))
        return quantile * stdev(self.numbers.values()) / sqrt(n)

    def at(self, trial: int) -> float:
        """The number of one trial."""
        return self.numbers[trial] if isinstance(self.numbers, Mapping) else self.numbers

    def __sub__(self, other: Estimate) -> Estimate:
        # Rounded far below any accuracy or loss, so that 97.2 - 96.1 equals 13.2 - 12.1.
        return _by_trial(lambda a, b: round(a - b, 9), self, other)

    def __mul__(self, factor: float) -> Estimate:
        return _by_trial(lambda a: a * factor, self)

    def __abs__(self) -> Estimate:
        return _by_trial(abs, self)

    def __str__(self) -> str:
        if not isinstance(self.numbers, Mapping):
            return _short(self.numbers)
        if self.scatter is None:
            return "too few trials"
        return f"{_short(self.mean)} ± {_short(self.scatter)}"


def _by_trial(operation: Callable[..., float], *operands: Estimate) -> Estimate:
    """`operation` on the numbers of each trial that all `operands` have."""
    trials = [set(each.numbers) for each in operands if isinstance(each.numbers, Mapping)]
    if not trials:
        return Estimate(operation(*(each.numbers for each in operands)))
    common = sorted(set.intersection(*trials))
    return Estimate({trial: operation(*(each.at(trial) for each in operands)) for trial in common})


def _short(number: float) -> str:
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2g}"


@dataclass(frozen=True)
class Finding:
    """One comparison: what with what, the numbers, whether they bear it out (None: undecided)."""

    what: str
    numbers: str
    outcome: bool | None


def exceeds(what: str, a: Estimate, b: Estimate, by: float = 0.0) -> Finding:
    """Whether `a` is more than `by` above `b`; undecided within the scatter of their difference.

    With a negative `by`: whether `a` is at most that much below `b`.
    """

    def outcome(difference: float, scatter: float) -> bool | None:
        return difference > by if abs(difference - by) > scatter else None

    return _finding(what, a, b, outcome)


def keeps_up(what: str, a: Estimate, b: Estimate) -> Finding:
    """Whether `a` is not below `b` beyond the scatter of their difference.

    Undecided where the scatter is so wide that a `NOTABLE` difference could hide in it.
    """

    def outcome(difference: float, scatter: float) -> bool | None:
        if difference < -scatter:
            return False
        return True if scatter <= NOTABLE else None

    return _finding(what, a, b, outcome)


def _finding(
    what: str, a: Estimate, b: Estimate, outcome: Callable[[float, float], bool | None]
) -> Finding:
    difference = a - b
    if difference.scatter is None:
        return Finding(what, f"{a} against {b}", None)
    numbers = f"{a} against {b} (difference {difference})"
    return Finding(what, numbers, outcome(difference.mean, difference.scatter))
