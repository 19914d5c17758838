"""A sentence of the paper that numbers can bear out or refute, and the verdict over it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from chainer_jo.paper.claims.scatter import Finding

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
NOT_ENOUGH_RUNS = "not enough runs"


class Results(Protocol):
    """What the claims read: finished runs of one preset, under the names that the paper gives them.

    Learning rates, noise rates, hyper parameters, epochs and the k of top-k are the paper's, also
    where a preset scales them. Numbers and curves come by trial; runs of one trial have one seed.
    The trial of an unfinished or diverged run is left out.
    """

    def trials(self, kind: str, **keys) -> Mapping[int, float]:
        """One number per trial, in percent, as it is at the end of a run.

        ==================  ===================================  =================================
        kind                keys                                 number
        ==================  ===================================  =================================
        table1, table2      method, score, accuracy, noise_rate  as in the table
        table3              method, score                        test accuracy, on Clothing1M only
        table6 ... table11  parameter, value                     validation accuracy
        table12, table13    range                                recovery accuracy
        figure4             rule                                 test accuracy of the second step
        exchanged_classes   classes, noise_rate                  recovery accuracy by true class
        label_accuracy      labels, stage                        labels whose arg max is right
        ==================  ===================================  =================================

        exchanged_classes is our method of Table 2, classes "exchanged" (cat and dog) or "other";
        label_accuracy is of the labels in Figures 5 and 6. rule: "soft", "all", "top50", "top500",
        "top5000". labels: "ground_truth", "symmetric_0.3", "symmetric_0.5", "pseudo". stage:
        "initial" or, after the first step, "updated". Other names and values are those of the
        tables in `chainer_jo.paper`.
        """

    def curve(self, kind: str, **keys) -> Mapping[int, Sequence[float]]:
        """By trial, one number per epoch, accuracies in percent.

        ==============  ==================  =============================
        kind            keys                number
        ==============  ==================  =============================
        table1, table2  method, noise_rate  test accuracy, second step
        figure2         learning_rate       test accuracy
        figure3         noise_rate          training loss (cross entropy)
        figure4         rule                recovery accuracy, first step
        figure5         labels, stage       test accuracy, second step
        figure6         labels, stage       training loss, second step
        ==============  ==================  =============================
        """

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs, and after which the learning rate is divided: "second_step" or "figure3"."""


@dataclass(frozen=True)
class Verdict:
    """One of the three verdicts, the figures that decide it, and why."""

    verdict: str
    figures: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and how the results are held against it.

    ``quote`` is exact, as in the paper's LaTeX source; ``check`` says in words what ``findings``
    compares.
    """

    id: str
    place: str
    quote: str
    check: str
    findings: Callable[[Results], Iterable[Finding]]

    def decide(self, results: Results) -> Verdict:
        """Holds if every finding bears the sentence out, does not if one of them refutes it."""
        findings = list(self.findings(results))
        figures = "; ".join(f"{finding.what}: {finding.numbers}" for finding in findings)
        refuting = [finding.what for finding in findings if finding.outcome is False]
        undecided = [finding.what for finding in findings if finding.outcome is None]
        if refuting:
            return Verdict(DOES_NOT_HOLD, figures, "refuted by " + ", ".join(refuting))
        if undecided:
            reason = "too few common trials, or within their scatter: " + ", ".join(undecided)
            return Verdict(NOT_ENOUGH_RUNS, figures, reason)
        return Verdict(HOLDS, figures, f"borne out by every comparison ({len(findings)})")
