"""The statistics of trials: numbers by trial, intervals of their mean, scatter of two sides.

Claims compare numbers trial by trial, by the `Trials.interval` of their difference. A comparison
with a reference, whose trials are other draws, has a `limit` of what is within scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, sqrt
from statistics import fmean, median, stdev, variance

CONFIDENCE = 0.95
"""Confidence level of every interval of a mean."""

TYPICAL_WEIGHT = 2
"""Weight of the typical variance in each cell, in degrees of freedom. Six trials of Tables 1 and 2
on the digits, held against each other, justify one or two: unstable cells scatter six to nine times
as far."""


@dataclass(frozen=True)
class Trials:
    """Numbers by the trial's seed and their mean; or a ``constant`` for all trials, see `of_all`.

    The number of a trial that diverged is None. Arithmetic goes trial by trial, over the trials
    that every operand has; a trial that diverged in one operand has diverged in the result. A
    constant, such as a number that the paper quotes, goes with any trial and has no scatter.
    ``empty`` trials of those ``planned`` have finished with nothing to count.
    """

    numbers: Mapping[int, float | None]
    planned: int = 0
    empty: int = 0
    constant: float | None = None

    @staticmethod
    def of_all(constant: float) -> Trials:
        """One number for all trials."""
        return Trials({}, constant=constant)

    @property
    def has_numbers(self) -> bool:
        """True if there is a number: of any trial, or of all."""
        return bool(self.numbers) or self.constant is not None

    @cached_property
    def finished(self) -> tuple[float, ...]:
        """The numbers of the trials that did not diverge."""
        numbers = (self.constant, *self.numbers.values())
        return tuple(number for number in numbers if number is not None)

    @property
    def diverged(self) -> int:
        """The number of trials that diverged."""
        return sum(number is None for number in self.numbers.values())

    @property
    def done(self) -> int:
        """The number of trials that have ended."""
        return len(self.numbers) + self.empty

    @property
    def complete(self) -> bool:
        return self.done == self.planned

    @cached_property
    def mean(self) -> float:
        """Mean over the trials that did not diverge; StatisticsError without any."""
        return fmean(self.finished)

    @property
    def mean_or_none(self) -> float | None:
        """The mean for files: None without a finished trial."""
        return self.mean if self.finished else None

    @cached_property
    def std(self) -> float | None:
        """The trials' standard deviation (unbiased); None for fewer than two."""
        if self.constant is not None:
            return 0.0
        return stdev(self.finished) if len(self.finished) > 1 else None

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end of the mean's interval by Student's t; None for fewer than two
        trials. Trials that are all equal have an interval without width."""
        n = len(self.finished)
        if self.constant is not None or self.std is None:
            return None
        half = half_width(self.std**2, 1 / n, n - 1, 1 - CONFIDENCE)
        return self.mean - half, self.mean + half

    def rounded(self, digits: int) -> str:
        """``91.2 ± 0.3``, or ``91.2`` of one trial; StatisticsError without any."""
        spread = "" if self.std is None else f" ± {self.std:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"

    def only(self, trials: Iterable[int]) -> Trials:
        """These trials; a constant stays."""
        if self.constant is not None:
            return self
        return Trials({trial: self.numbers[trial] for trial in trials})

    def at(self, trial: int) -> float | None:
        """The number of one trial."""
        return self.numbers[trial] if self.constant is None else self.constant

    def __sub__(self, other: Trials) -> Trials:
        # Rounded far below any accuracy or loss, so that 97.2 - 96.1 equals 13.2 - 12.1.
        return _by_trial(lambda a, b: round(a - b, 9), self, other)

    def __abs__(self) -> Trials:
        return _by_trial(abs, self)


def half_width(variance: float, share: float, degrees: int, error_rate: float) -> float:
    """Half width of an interval by Student's t: ``variance`` of one trial, estimated with so many
    degrees of freedom; ``share`` of it that the mean, or a difference of means, has."""
    from scipy.special import stdtrit  # not for commands that only list or refuse

    return float(stdtrit(degrees, 1 - error_rate / 2)) * sqrt(variance * share)


def _by_trial(operation: Callable[..., float], *operands: Trials) -> Trials:
    """`operation` on the numbers of each trial that all `operands` have."""
    constants = [each.constant for each in operands if each.constant is not None]
    if len(constants) == len(operands):
        return Trials.of_all(operation(*constants))
    result: dict[int, float | None] = {}
    trials = (set(each.numbers) for each in operands if each.constant is None)
    for trial in sorted(set.intersection(*trials)):
        finished = [n for each in operands if (n := each.at(trial)) is not None]
        result[trial] = operation(*finished) if len(finished) == len(operands) else None
    return Trials(result)


@dataclass(frozen=True)
class Scatter:
    """Variance of one trial, and its degrees of freedom."""

    variance: float
    degrees: int

    @staticmethod
    def of(*sides: Trials) -> Scatter:
        """Pooled over the trials of several sides, each around its own mean; without degrees of
        freedom unless one side has two trials."""
        several = [side.finished for side in sides if len(side.finished) > 1]
        degrees = sum(len(numbers) - 1 for numbers in several)
        squares = fsum(variance(numbers) * (len(numbers) - 1) for numbers in several)
        return Scatter(squares / max(degrees, 1), degrees)

    def shrunk(self, typical: float | None) -> Scatter:
        """Drawn towards a ``typical`` variance, if there is one, as in the moderated t statistic
        (Smyth 2004)."""
        if typical is None:
            return self
        degrees = self.degrees + TYPICAL_WEIGHT
        return Scatter((self.variance * self.degrees + TYPICAL_WEIGHT * typical) / degrees, degrees)


def typical_variance(cells: Sequence[Scatter]) -> float:
    """The median variance of many cells."""
    return median(cell.variance for cell in cells)


def limit(scatter: Scatter, a: Trials, b: Trials, error_rate: float) -> float:
    """The largest difference of both sides' means that is within scatter."""
    share = 1 / len(a.finished) + 1 / len(b.finished)
    return half_width(scatter.variance, share, scatter.degrees, error_rate)


def weighted_mean(cells: Sequence[Trials], scatters: Sequence[Scatter]) -> Trials:
    """The mean over cells of equally many trials, one number per trial in their order. Cells weigh
    by the inverse of their scatter, so that noisy cells do not dominate."""
    weights = [scatter.variance**-0.5 for scatter in scatters]
    columns = zip(*(cell.finished for cell in cells), strict=True)
    total = fsum(weights)
    means = (fsum(map(float.__mul__, weights, column)) / total for column in columns)
    return Trials(dict(enumerate(means)))


def alike(*numbers: float) -> list[str]:
    """Numbers with as many decimals as the largest of them needs."""
    largest = max(map(abs, numbers))
    digits = 1 if largest >= 10 else 2 if largest >= 1 else 3
    return [f"{number:.{digits}f}" for number in numbers]
