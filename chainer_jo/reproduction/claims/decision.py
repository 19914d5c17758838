"""The rule by which a difference decides, shared by all claims.

Runs of one trial share a seed: the validation split, the noisy labels of each kind, the initial
weights and the order of the images in each step. Differences are therefore taken trial by trial,
over the trials that both sides have, so that shared scatter cancels.

The mean of n such differences is known up to t * s / sqrt(n): s is their standard deviation
(unbiased), t the two-sided 95 % quantile of Student's distribution with n - 1 degrees of freedom.
That makes an interval, which needs two trials or more, and the interval decides:

- It lies beyond the bound (0, or a margin): the comparison supports the claim.
- It lies on the other side: the comparison speaks against it. Whether that refutes a claim of
  several comparisons is a question for all of them together: `holm_outcomes`.
- The bound is 0 and the interval lies within `TIE` of it on both sides: a tie, which more trials
  would not change. This is the test of equivalence by two one-sided tests.
- Otherwise the comparison is undecided.

"±" shows one standard deviation over trials, as in tables; intervals are written out.

Student's t assumes normal differences. Accuracies are counts of images with a maximum of 100 %, so
all differences can be equal. Equal differences make no interval and no tie. The sign test then
decides: all n lie on one side by chance in one case of 2 to the n, so six trials decide and five do
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from chainer_jo.reproduction.trials import CONFIDENCE, EQUAL, Trials, alike, mean_of

NOTABLE = 2.0
"""Percentage points: a smaller loss in accuracy is none, a larger gain is clearly better."""

TIE = 1.0
"""Percentage points: accuracies tie if the interval of their difference is within this."""

ALPHA = (1 - CONFIDENCE) / 2
"""The probability of a false decision that one comparison may have."""

PERCENT, POINTS = "%", "points"

SUPPORTS = "supports"
REFUTES = "refutes"
NOT_MET = "premise not met"
TIES = "ties"
UNDECIDED = "undecided"
MOSTLY_DIVERGED = "mostly diverged"
TOO_FEW_TRIALS = "too few trials"
PARTLY_RUN = "not all run"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """Test that `a` is more than `by` above `b`; with a negative `by`, less than that below.

    Parameters
    ----------
    compared : the numbers compared, in words.
    ties : True for percentages, where a difference within `TIE` is a tie.
    premise : True for an assumption of the claim.
    unit : unit of `a` and `b`; differences of percentages are in points.
    partly : True for means over settings that have not all been run.
    """

    compared: str
    a: Trials
    b: Trials
    by: float = 0.0
    ties: bool = False
    premise: bool = False
    unit: str = PERCENT
    partly: bool = False

    @cached_property
    def difference(self) -> Trials:
        return self.a - self.b

    @property
    def difference_unit(self) -> str:
        return POINTS if self.unit == PERCENT else self.unit

    @cached_property
    def outcome(self) -> str:
        """Outcome of this comparison without correction for others."""
        if not (self.a.has_numbers and self.b.has_numbers):
            return NOT_RUN
        difference = self.difference
        if self.partly:
            return PARTLY_RUN
        if difference.diverged and difference.diverged >= len(difference.finished):
            return MOSTLY_DIVERGED
        if len(difference.finished) < 2:
            return TOO_FEW_TRIALS
        if self.p_upper <= ALPHA:
            return SUPPORTS
        return REFUTES if self.p_lower <= ALPHA else self.close

    @property
    def close(self) -> str:
        """The outcome if it neither supports nor refutes: a tie, or undecided."""
        if self.difference.interval is None:
            return UNDECIDED
        low, high = self.difference.interval
        alike = self.ties and not self.by and low > -TIE and high < TIE
        return TIES if alike else UNDECIDED

    @property
    def p_value(self) -> float | None:
        """`p_lower`; None without enough trials for a test."""
        if self.outcome in (NOT_RUN, PARTLY_RUN, MOSTLY_DIVERGED, TOO_FEW_TRIALS):
            return None
        return self.p_lower

    @cached_property
    def p_lower(self) -> float:
        """One-sided p-value, lower tail: the probability of a mean difference this low or lower if
        the true one is exactly `by`."""
        return self._tail(self.difference.mean - self.by)

    @property
    def p_upper(self) -> float:
        """One-sided p-value, upper tail."""
        return self._tail(self.by - self.difference.mean)

    def _tail(self, excess: float) -> float:
        """The probability of a mean difference that lies `excess` or farther to one side."""
        n, std = len(self.difference.finished), self.difference.std
        if std is None or std < EQUAL:
            return 0.5**n if excess < -EQUAL else 1.0
        from scipy.special import stdtr  # not for commands that only list or refuse

        return float(stdtr(n - 1, excess / (std / sqrt(n))))

    @property
    def sides(self) -> str:
        """Both sides in words, over the trials that they share, if any: "91.0 ± 9.9 versus 90.0 ±
        10.0 %"."""
        if not (self.a.has_numbers or self.b.has_numbers):
            return str(self.a)
        unit, shared = f" {self.unit}" * bool(self.a.finished and self.b.finished), self.difference
        a, b = (
            Trials({trial: side.at(trial) for trial in shared.numbers} or side.numbers)
            if side.constant is None
            else side
            for side in (self.a, self.b)
        )
        return f"{a} versus {b}{unit}"

    @property
    def difference_in_words(self) -> str:
        """The mean difference, with its interval if any; empty without common trials."""
        difference, n = self.difference, len(self.difference.finished)
        if not n:
            return ""
        bound = f"required: over {self.by:g}" if self.by else ""
        if difference.interval is None:
            trials = f"each of {n} trials" if n > 1 else "1 trial"
            mean = f"{alike(difference.mean)[0]} {self.difference_unit} in {trials}"
            return mean + (f" ({bound})" if bound else "")
        mean, low, high = alike(difference.mean, *difference.interval)
        within = "; ".join(filter(None, (f"{low} to {high}", bound)))
        return f"{mean} {self.difference_unit} ({within})"


def not_inferior(compared: str, a: Trials, b: Trials) -> Finding:
    """Test of non-inferiority: `a` is less than `NOTABLE` points below `b`. A loss of `NOTABLE`
    passes in one case of 40, whatever the scatter."""
    return Finding(compared, a, b, by=-NOTABLE)


def on_average(
    compared: str, a: dict[float, Trials], b: dict[float, Trials], by: float = 0.0
) -> Finding:
    """Test that the mean of `a` over all noise rates is more than `by` above the mean of `b`; both
    by noise rate. The test is open until every rate has been run."""
    run = [rate for rate in a if a[rate].numbers and b[rate].numbers]
    over = f"mean over r = {', '.join(f'{rate:g}' for rate in run or a)}"
    partly = f" alone of {len(a)} rates" if 0 < len(run) < len(a) else ""
    ours, theirs = (mean_of([side[rate] for rate in run]) if run else Trials({}) for side in (a, b))
    return Finding(f"{compared}, {over}{partly}", ours, theirs, by, ties=True, partly=bool(partly))


def decidable(trials: int, power: float = 0.8) -> float:
    """The true mean difference, in standard deviations of the differences, at which so many trials
    decide one comparison with probability ``power`` (noncentral t)."""
    from scipy.special import nctdtrinc, stdtrit

    critical = stdtrit(trials - 1, 1 - ALPHA)
    return float(nctdtrinc(trials - 1, 1 - power, critical) / sqrt(trials))


def levels(findings: Sequence[Finding]) -> list[float | None]:
    """The `p_value` at which each of a claim's comparisons would refute it, by Holm's step-down
    rule: of m comparisons the one with the smallest `p_value` at 2.5 % / m, the next at 2.5 % / (m
    - 1), and so on, up to the first that does not, whose level all after it would have to reach.
    None for one without a `p_value`."""
    p_values = {k: f.p_value for k, f in enumerate(findings) if f.p_value is not None}
    holm: dict[int, float] = {}
    level, refuted = 0.0, True
    for rank, k in enumerate(sorted(p_values, key=p_values.__getitem__)):
        if refuted:
            level = ALPHA / (len(p_values) - rank)
            refuted = p_values[k] <= level
        holm[k] = level
    return [holm.get(k) for k in range(len(findings))]


def holm_outcomes(findings: Sequence[Finding]) -> list[str]:
    """Outcomes of all of a claim's comparisons, corrected for their number.

    Some comparison of many lies on the wrong side by chance alone, so `REFUTES` has to pass Holm's
    rule, `levels`. A claim whose differences are truly at their bounds is then refuted in one case
    of 40 at most, however many comparisons it has and whatever runs they share.

    `SUPPORTS` and `TIES` need no such rule: a claim holds only if every comparison supports it, so
    more of them make that rarer, not more frequent.
    """
    outcomes = [finding.outcome for finding in findings]
    for k, (finding, level) in enumerate(zip(findings, levels(findings), strict=True)):
        if level and finding.p_lower <= level:
            outcomes[k] = NOT_MET if finding.premise else REFUTES
        elif outcomes[k] == REFUTES:
            outcomes[k] = finding.close
    return outcomes
