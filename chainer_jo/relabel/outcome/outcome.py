"""Everything that a relabelling computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chainer_jo.relabel.outcome.corrected_labels import AuditResult, CorrectedLabels
from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.text import percent

#: Least certain difference of two accuracies, in standard errors.
CERTAIN_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Accuracy:
    """Accuracies in [0, 1] on ``number`` images of the held-out set ``of``: of a network trained on
    the given labels (None without one), and of a network trained on the new labels."""

    of: str
    number: int
    before: float | None
    after: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that a relabelling computes.

    Attributes
    ----------
    network : network trained on the new labels; None if no network was trained.
    about : settings of the computation, by name.
    audit : rows of the random sample to be reviewed by hand.
    choice : share of the noisy labels predicted by networks that did not see them, by features;
        the features with the largest share were used. Empty if the user gave the features.
    """

    labels: CorrectedLabels
    network: TrainedNetwork | None
    accuracies: Sequence[Accuracy]
    about: Mapping[str, str]
    audit: np.ndarray = field(default_factory=lambda: np.arange(0))
    choice: Mapping[str, float] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """Reason why the new labels may be no better than the given ones; empty without one."""
        return self.labels.errors.doubt or doubt(self.accuracies)

    @property
    def audited(self) -> AuditResult | None:
        """Result of the audit; None until all images are reviewed, because images that the report
        also lists are reviewed first and have a higher share of errors."""
        labels, drawn = self.labels, self.audit
        if not len(drawn) or not labels.reviewed[drawn].all():
            return None
        errors = labels.errors
        wrong = labels.new[drawn] != errors.given[drawn]
        return AuditResult(wrong, 1 - errors.probability_given[drawn], errors.share_wrong)


def choice_in_words(shares: Mapping[str, float]) -> str:
    """`Outcome.choice` and its margins in words."""
    best, *others = sorted(shares, key=lambda name: -shares[name])
    words = f"networks on {best} agree with {percent(shares[best])} of the given labels"
    for other in others:
        words += f", {100 * (shares[best] - shares[other]):.1f} points more than {other}"
    return words


def doubt(accuracies: Sequence[Accuracy]) -> str:
    """Warning if a network trained on the new labels is certainly worse than one trained on those
    given; else empty."""
    for accuracy in accuracies:
        if accuracy.before is None:
            continue
        # With a success and a failure more in each (Agresti and Caffo): few images say little.
        n, shares = accuracy.number, (accuracy.before, accuracy.after)
        before, after = ((n * share + 1) / (n + 2) for share in shares)
        error = math.sqrt((before * (1 - before) + after * (1 - after)) / (n + 2))
        if before - after > CERTAIN_STANDARD_ERRORS * error:
            return (
                f"The new labels are probably worse than the given labels: a network trained on "
                f"them reaches {percent(accuracy.after)} instead of {percent(accuracy.before)} on "
                f"{accuracy.of}. More --epochs or another --learning-rate may help."
            )
    return ""
