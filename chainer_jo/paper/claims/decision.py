"""When a difference decides: the one rule that all claims share.

Runs of one trial have one seed: the same validation split and noisy labels of each kind, and the
same initial weights and order of the images in each step. What is compared is therefore subtracted
trial by trial, over the trials that both sides have: scatter that both share cancels.

The mean of n such differences is known up to t * s / sqrt(n): s is their standard deviation
(unbiased), t the two-sided 95 % quantile of Student's distribution with n - 1 degrees of freedom.
That makes an interval, which needs two trials or more, and the interval decides:

- It lies beyond the bound (0, or a margin of some points): the comparison supports the claim.
- It lies on the other side: the comparison speaks against it. Whether that refutes a claim of
  several comparisons is a question for all of them together: `together`.
- The bound is 0 and the interval lies within `TIE` of it on both sides: a tie, which more trials
  would not change. These are the two one-sided tests of equivalence.
- Else it is undecided.

"±" shows one standard deviation over trials, as in tables; intervals are written out.

Student's t takes the differences to be normal. Accuracies are counted in images, though, and two
differences can be equal by chance: they make no interval. Three or more do, one of no width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from scipy.special import stdtr

from chainer_jo.paper.trials import CONFIDENCE, Trials, alike

NOTABLE = 2.0
"""Percentage points: a smaller loss of accuracy still counts as keeping it."""

TIE = 1.0
"""Percentage points: accuracies whose difference is surely smaller are tied."""

SUPPORTS = "supports"
REFUTES = "refutes"
NOT_MET = "premise not met"
TIES = "ties"
UNDECIDED = "undecided"
MOSTLY_DIVERGED = "mostly diverged"
TOO_FEW_TRIALS = "too few trials"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Finding:
    """One comparison: whether `a` is more than `by` above `b`.

    Parameters
    ----------
    what : which numbers these are, in words.
    ties : whether the numbers are percentages of which a difference within `TIE` is a tie.
    premise : whether it is what the claim starts from, rather than what it says.
    """

    what: str
    a: Trials
    b: Trials
    by: float = 0.0
    ties: bool = False
    premise: bool = False

    @cached_property
    def difference(self) -> Trials:
        return self.a - self.b

    @cached_property
    def outcome(self) -> str:
        """The outcome of this comparison alone."""
        if not (self.a.given or self.a.numbers) or not (self.b.given or self.b.numbers):
            return NOT_RUN
        difference = self.difference
        if difference.diverged and difference.diverged >= len(difference.finished):
            return MOSTLY_DIVERGED
        if difference.interval is None:
            return TOO_FEW_TRIALS
        low, high = difference.interval
        if low > self.by:
            return SUPPORTS
        return REFUTES if high < self.by else self.close

    @property
    def close(self) -> str:
        """The outcome if it neither supports nor refutes: a tie, or undecided."""
        low, high = self.difference.interval
        return TIES if self.ties and low > -TIE and high < TIE else UNDECIDED

    @cached_property
    def chance(self) -> float | None:
        """How probable a mean difference this low or lower is if the true one is exactly `by`; None
        where `outcome` has nothing to go by."""
        if self.outcome in (NOT_RUN, MOSTLY_DIVERGED, TOO_FEW_TRIALS):
            return None
        excess, n = self.difference.mean - self.by, len(self.difference.finished)
        if self.difference.given or not self.difference.std:
            return 0.0 if excess < 0 else 1.0
        return float(stdtr(n - 1, excess / (self.difference.std / sqrt(n))))

    @property
    def numbers(self) -> str:
        """Both sides, and their difference with its interval where there is one."""
        if not any((self.a.given, self.b.given, self.a.numbers, self.b.numbers)):
            return str(self.a)
        sides = f"{self.a} against {self.b}"
        if self.difference.interval is None:
            return sides
        mean, low, high = alike(self.difference.mean, *self.difference.interval)
        bound = f", asked for: over {self.by:g}" if self.by else ""
        return f"{sides}, difference {mean} ({low} to {high}{bound})"


def exceeds(what: str, a: Trials, b: Trials, by: float = 0.0, *, ties: bool = False) -> Finding:
    """Whether `a` is more than `by` above `b`.

    With a negative `by`: whether `a` is less than that much below `b`.
    """
    return Finding(what, a, b, by, ties)


def keeps_up(what: str, a: Trials, b: Trials) -> Finding:
    """Whether `a` is less than `NOTABLE` points below `b`: the test of non-inferiority.

    A loss of `NOTABLE` passes in one case of 40, whatever the scatter; a smaller one passes once
    there are trials enough to tell.
    """
    return Finding(what, a, b, by=-NOTABLE)


def together(findings: Sequence[Finding]) -> list[str]:
    """The outcomes of all of a claim's comparisons, taken together.

    Some comparison of many lies on the wrong side by chance alone, so `REFUTES` has to pass Holm's
    step-down rule: of m comparisons the one with the smallest `chance` refutes if that is under
    2.5 % / m, the next if it is under 2.5 % / (m - 1), and so on up to the first that is not. A
    claim whose differences are truly at their bounds is then refuted in one case of 40 at most,
    however many comparisons it has and whatever runs they share.

    `SUPPORTS` and `TIES` need no such rule: a claim holds only if every comparison supports it, so
    more of them make that rarer, not more frequent.
    """
    chances = {k: c for k, finding in enumerate(findings) if (c := finding.chance) is not None}
    refuting = set()
    for k in sorted(chances, key=chances.get):
        if chances[k] > (1 - CONFIDENCE) / 2 / (len(chances) - len(refuting)):
            break
        refuting.add(k)
    outcomes = [finding.outcome for finding in findings]
    for k, finding in enumerate(findings):
        if k in refuting:
            outcomes[k] = NOT_MET if finding.premise else REFUTES
        elif outcomes[k] == REFUTES:
            outcomes[k] = finding.close
    return outcomes
