"""A statement of the paper that numbers can support or refute, and its verdict."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

from chainer_jo.reproduction.claims import decision
from chainer_jo.reproduction.claims.decision import Finding
from chainer_jo.reproduction.trials import Trials

HOLDS = "holds"
IN_PART = "in part"
DOES_NOT_HOLD = "does not hold"
TIE = "a tie"
PREMISE = "a premise"
NO_PREMISE = "premise not met"
UNDECIDED = "undecided"
TOO_FEW_TRIALS = "too few trials"
NOT_ALL_RUN = "not all run"
NOT_RUN = "not run"
DECIDED = (HOLDS, IN_PART, DOES_NOT_HOLD)
VERDICTS = (
    HOLDS, IN_PART, DOES_NOT_HOLD, TIE, PREMISE, NO_PREMISE,
    UNDECIDED, TOO_FEW_TRIALS, NOT_ALL_RUN, NOT_RUN,
)  # fmt: skip
"""`IN_PART`: a comparison refutes the claim, but most support it. `PREMISE`: the claim holds, but
the preset was chosen to make it hold, so it is an assumption and not a result."""


class Results(Protocol):
    """Finished runs of one preset, under the names that the paper gives them.

    Learning rates, noise rates, hyper parameters, epochs and the k of top-k are the paper's, also
    where a preset scales them. Numbers and curves come by the trial's seed. A diverged run has
    None; an unfinished one is left out, as is a run that has no such number.

    ``premises`` are the ids of the claims that the preset was chosen to bear out.
    """

    @property
    def premises(self) -> Sequence[str]: ...

    def trials(self, kind: str, **keys) -> Trials:
        """One number per trial, in percent, at the end of a run.

        ==================  ===================================  =================================
        kind                keys                                 number
        ==================  ===================================  =================================
        table1, table2      method, score, accuracy, noise_rate  as in the table
        table3              method, score, accuracy              test accuracy, on Clothing1M only
        table6 ... table11  parameter, value                     validation accuracy
        table12, table13    quantity, range                      label accuracy: "accuracy"
        ablations           noise, removed, quantity             label accuracy, first step
        figure4             rule, accuracy                       as in the text beside it
        exchanged_classes   classes, noise_rate                  label accuracy by true class
        label_accuracy      labels, stage                        labels whose arg max is right
        ==================  ===================================  =================================

        Tables 1 and 2 also have the method "noisy_labels" with score "initial": the label
        accuracy of the labels before any method. exchanged_classes is our method of Table 2,
        classes "exchanged" (cat and dog) or "other". Of ablations, removed is "nothing",
        "averaging", "prior", "entropy" or "both terms", quantity "first" (after the first update),
        "last", "except_best_class" (at the end, of all classes except the most accurate one) or
        "above_0.99" (the share of the labels with a probability over 0.99).
        label_accuracy is of the labels in Figures 5 and 6. rule: "soft", "all", "top50", "top500",
        "top5000". labels: "ground_truth", "symmetric_0.3", "symmetric_0.5", "pseudo". stage:
        "initial" or, after the first step, "updated". Other names and values are those of the
        tables in `paper`. A range without any label has no label accuracy.
        """

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        """One number per epoch by trial, accuracies in percent. ``logged`` names another entry of
        the log: "accuracy/noisy" (noisy labels predicted), or for the training loss
        "cross_entropy" or "classification", which is the KL divergence (eq. 6).

        ==============  ==================  =============================
        kind            keys                number
        ==============  ==================  =============================
        table1, table2  method, noise_rate  test accuracy, second step
        figure2         learning_rate       test accuracy
        figure3         noise_rate          training loss (cross entropy)
        figure4         rule                label accuracy, first step
        figure5         labels, stage       test accuracy, second step
        figure6         labels, stage       training loss, second step
        ==============  ==================  =============================
        """

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs, and those after which the learning rate is divided: "second_step", "figure3"."""


@dataclass(frozen=True)
class Verdict:
    """The result of a claim's comparisons.

    ``outcomes`` has one outcome of `decision` per finding, corrected for their number. `verdict`
    tests in this order: a premise is not met; a comparison refutes the claim; a comparison is open
    (the verdict names the comparison that lacks most); all comparisons support the claim. A refuted
    claim holds in part if more than half of its comparisons support it, premises left out.
    ``chosen``: the preset was chosen so that the claim holds.
    """

    findings: Sequence[Finding]
    outcomes: Sequence[str]
    chosen: bool = False

    @property
    def counts(self) -> Counter:
        """The number of comparisons with each outcome."""
        return Counter(self.outcomes)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        counts = self.counts
        if counts[decision.NOT_MET]:
            return NO_PREMISE
        if counts[decision.REFUTES]:
            supporting, compared = self.support
            return IN_PART if 2 * supporting > compared else DOES_NOT_HOLD
        if counts[decision.NOT_RUN] or counts[decision.PARTLY_RUN]:
            return NOT_RUN if counts[decision.NOT_RUN] == len(self.findings) else NOT_ALL_RUN
        if counts[decision.TOO_FEW_TRIALS]:
            return TOO_FEW_TRIALS
        if counts[decision.UNDECIDED] or counts[decision.MOSTLY_DIVERGED]:
            return UNDECIDED
        if counts[decision.TIES]:
            return TIE
        return PREMISE if self.chosen else HOLDS

    @property
    def support(self) -> tuple[int, int]:
        """Supporting comparisons and all comparisons, both without premises."""
        pairs = zip(self.findings, self.outcomes, strict=True)
        outcomes = [outcome for finding, outcome in pairs if not finding.premise]
        return outcomes.count(decision.SUPPORTS), len(outcomes)

    @property
    def remarks(self) -> list[str]:
        """Outcome of each comparison; if undecided, its p-value and the level that decides."""
        levels = decision.levels(self.findings)
        return [
            _undecided(finding, level) if level and outcome == decision.UNDECIDED else outcome
            for finding, outcome, level in zip(self.findings, self.outcomes, levels, strict=True)
        ]

    @property
    def against(self) -> int:
        """Number of undecided comparisons that would refute the claim if they were alone."""
        undecided = self._with_outcome(decision.UNDECIDED)
        return sum(finding.outcome == decision.REFUTES for finding in undecided)

    @property
    def within(self) -> float | None:
        """Bound in points, rounded up to a tenth, on the differences that tie."""
        ties = self._with_outcome(decision.TIES)
        ends = [abs(end) for finding in ties for end in finding.difference.interval or ()]
        return ceil(round(max(ends) * 10, 6)) / 10 if ends else None

    @property
    def trials(self) -> tuple[int, int]:
        """The fewest and the most trials behind a comparison; 0 where one is not run."""
        pairs = zip(self.findings, self.outcomes, strict=True)
        unrun = (decision.NOT_RUN, decision.PARTLY_RUN)
        numbers = [0 if out in unrun else len(f.difference.finished) for f, out in pairs]
        return min(numbers), max(numbers)

    @property
    def diverged(self) -> int:
        """The largest number of diverged trials on a side of one comparison."""
        return max(s.diverged for f in self.findings for s in (f.a, f.b, f.difference))

    @property
    def label(self) -> str:
        """The verdict with its numbers: "in part (8 of 10)", "a tie in 1 of 5 within 0.6 points",
        "undecided after 6 trials, 1 of 5 against it"."""
        verdict, (fewest, most) = self.verdict, self.trials
        if verdict == TIE:
            n = len(self.findings)
            of = f" in {self.counts[decision.TIES]} of {n}" if n > 1 else ""
            verdict = f"{TIE}{of} within {self.within:g} point{'' if self.within == 1 else 's'}"
        elif verdict == IN_PART:
            verdict = "{} ({} of {})".format(IN_PART, *self.support)
        elif verdict == UNDECIDED:
            to = "" if fewest == most else f" to {most}"
            verdict = f"{UNDECIDED} after {fewest}{to} trials"
        if self.verdict not in (DOES_NOT_HOLD, IN_PART) and self.against:
            verdict += f", {self.against} of {len(self.findings)} against it"
        return f"{verdict} ({self.diverged} diverged)" if self.diverged else verdict

    @property
    def tally(self) -> list[str]:
        """Number of comparisons with each outcome; names those that do not support the claim."""
        counts, n = self.counts, len(self.findings)
        parts = [f"{counts[decision.SUPPORTS]} of {n} comparisons support the claim"]
        for outcome, words in _WORDS.items():
            if counts[outcome]:
                which = ", ".join(finding.compared for finding in self._with_outcome(outcome))
                named = f": {which}" if counts[outcome] < n else ""
                parts.append(f"{counts[outcome]} {words}{named}")
        return parts

    def _with_outcome(self, outcome: str) -> list[Finding]:
        pairs = zip(self.findings, self.outcomes, strict=True)
        return [finding for finding, each in pairs if each == outcome]


_WORDS = {
    decision.REFUTES: "refute the claim",
    decision.NOT_MET: "a premise that is not met",
    decision.TIES: f"tie within {decision.TIE:g} point",
    decision.UNDECIDED: "undecided",
    decision.MOSTLY_DIVERGED: "undecided because most trials diverged",
    decision.TOO_FEW_TRIALS: "with fewer than two common trials",
    decision.PARTLY_RUN: "not all run",
    decision.NOT_RUN: "not run",
}


def _undecided(finding: Finding, level: float) -> str:
    if finding.difference.mean < finding.by:
        p_value, would = finding.p_lower, "refute"
    else:
        p_value, would, level = finding.p_upper, "support", decision.ALPHA
    against = " but against it" if finding.outcome == decision.REFUTES else ""
    p = f"p = {100 * p_value:.3g} %, {100 * level:.2g} % would {would} it"
    return f"{decision.UNDECIDED}{against}: {p}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its place there, and the comparisons that decide it.

    ``statement`` paraphrases the paper at ``place``; ``check`` describes the comparisons of
    ``findings``, which take the paper's words literally; ``shown_in`` names the tables and figures
    of its numbers. ``bounds`` has the comparisons of our stricter form, with a bound where the
    paper's words have none, and ``bounded_check`` describes them; None: there is one form only. A
    claim with ``own_images`` needs the paper's data set: classes and numbers of labels of CIFAR-10,
    numbers of Clothing1M. ``rests_on`` is the id of a claim that must hold first.
    """

    id: str
    place: str
    statement: str
    check: str
    findings: Callable[[Results], Iterable[Finding]]
    shown_in: tuple[str, ...]
    own_images: bool = False
    rests_on: str = ""
    bounds: Callable[[Results], Iterable[Finding]] | None = None
    bounded_check: str = ""

    def decide(self, results: Results) -> Verdict:
        """The verdict over `results` in the paper's words."""
        findings = tuple(self.findings(results))
        outcomes = tuple(decision.holm_outcomes(findings))
        return Verdict(findings, outcomes, chosen=self.id in results.premises)

    def decide_with_bounds(self, results: Results) -> Verdict | None:
        """The verdict in our stricter form; None where there is one form only."""
        return self.bounds and replace(self, findings=self.bounds).decide(results)
