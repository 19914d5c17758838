"""What the ways of relabelling come to, and what they have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.labelled_images import LabelledImages
from chainer_jo.relabel.report import RelabelReport
from chainer_jo.relabel.trained_network import TrainedNetwork
from chainer_jo.report.curves import Curve
from chainer_jo.report.grid import aligned
from chainer_jo.report.plot import plot

#: Standard errors that a difference has to have.
CERTAIN = 2.0


@dataclass(frozen=True)
class Accuracy:
    """Of a network trained on the labels as given, if there is one, and of one trained on the new
    ones, in [0, 1], on ``number`` images whose labels are right."""

    of: str
    number: int
    before: float | None
    after: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that is to be written.

    Attributes
    ----------
    network : the one trained on the new labels; None if none is.
    curves : runs whose validation accuracy is drawn, by what they are called.
    about : how it was computed, in lines of a name and a value.
    """

    labels: CorrectedLabels
    network: TrainedNetwork | None
    accuracies: Sequence[Accuracy]
    about: dict[str, str]
    curves: dict[str, Experiment] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """What has to be said before the new labels are used; empty if nothing has."""
        return self.labels.errors.doubt or doubt(self.accuracies)

    def with_true_labels(self, images: LabelledImages) -> Outcome:
        """The same for the same images, of which true labels are known."""
        return replace(self, labels=replace(self.labels, images=images))


def doubt(accuracies: Sequence[Accuracy]) -> str:
    """What has to be said if a network trained on the new labels is surely worse than one trained
    on those given; else empty."""
    for accuracy in accuracies:
        if accuracy.before is not None and surely_less(
            accuracy.after, accuracy.before, accuracy.number
        ):
            return (
                f"The new labels are likely worse than those given: a network trained on them "
                f"reaches {_percent(accuracy.after)} instead of {_percent(accuracy.before)} on "
                f"{accuracy.of}. More --epochs or another --learning-rate may help."
            )
    return ""


def surely_less(share: float, other: float, number: int) -> bool:
    """Whether a share of ``number`` images is less than another by `CERTAIN` standard errors."""
    # With a success and a failure more in each (Agresti and Caffo): few images say little.
    first, second = ((number * p + 1) / (number + 2) for p in (share, other))
    error = math.sqrt((first * (1 - first) + second * (1 - second)) / (number + 2))
    return second - first > CERTAIN * error


def accuracy_rows(accuracies: Sequence[Accuracy]) -> list[list[str]]:
    """A table of text, header first."""
    rows = [["accuracy on", "images", "labels as given", "new labels"]]
    for accuracy in accuracies:
        shares = (
            "" if share is None else f"{100 * share:.1f}"
            for share in (accuracy.before, accuracy.after)
        )
        rows.append([accuracy.of, f"{accuracy.number:,}", *shares])
    return rows


def score_rows(labels: CorrectedLabels) -> list[list[str]]:
    """A table of text, header first; no rows without true labels."""
    rows = [["a label is called wrong if", "precision", "recall", "F1"]]
    for rule, scores in labels.scores().items():
        shares = (scores.precision, scores.recall, scores.f1)
        rows.append([rule, *(f"{100 * share:.1f}" for share in shares)])
    return rows


def right(labels: CorrectedLabels) -> str:
    """How many labels are right, before and after, in words; empty without true labels."""
    scores = next(iter(labels.scores().values()), None)
    if scores is None:
        return ""
    return (
        f"{100 * scores.right_before:.1f} % of the labels were right, "
        f"{100 * scores.right_after:.1f} % are now"
        f" ({scores.known:,} true labels known)"
    )


def summary(outcome: Outcome) -> list[str]:
    """What came of it, in lines for the terminal."""
    labels = outcome.labels
    number, changed = len(labels.images), int(labels.errors.changed.sum())
    lines = [f"{changed:,} of {number:,} labels changed ({100 * changed / number:.1f} %)"]
    if known := right(labels):
        lines += [known, "", *aligned(score_rows(labels))]
    if outcome.accuracies:
        lines += ["", *aligned(accuracy_rows(outcome.accuracies))]
    return [*lines, "", doubtful] if (doubtful := outcome.doubt) else lines


def report(outcome: Outcome, name: str, store: RunStore) -> RelabelReport:
    """The same for a browser."""
    labels = outcome.labels
    number, changed = len(labels.images), int(labels.errors.changed.sum())
    tiles = [
        (f"{changed:,}", f"of {number:,} labels changed ({100 * changed / number:.1f} %)"),
        *(
            (
                " → ".join(_percent(p) for p in (a.before, a.after) if p is not None),
                f"accuracy on {a.of}",
            )
            for a in outcome.accuracies
        ),
    ]
    tables = {}
    if outcome.accuracies:
        tables["Accuracy of a network trained on them"] = accuracy_rows(outcome.accuracies)
    for rule, scores in list(labels.scores().items())[-1:]:
        before, after = _percent(scores.right_before), _percent(scores.right_after)
        tiles[1:1] = [
            (f"{before} → {after}", f"of the labels right ({scores.known:,} true labels known)"),
            (_percent(scores.f1), f"F1 of wrong labels found: {rule}"),
        ]
        tables = {"Wrong labels found": score_rows(labels), **tables}
    return RelabelReport(
        f"Corrected labels: {name}",
        _about(outcome),
        tiles,
        tables,
        _plot(outcome.curves, store) if outcome.curves else None,
        outcome.about,
    )


def _about(outcome: Outcome) -> str:
    labels = outcome.labels
    about = f"{len(labels.images):,} images of {len(labels.images.class_names)} classes."
    if doubtful := outcome.doubt:
        about += f" {doubtful}"
    return about


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plot(runs: dict[str, Experiment], store: RunStore) -> tuple[bytes, str]:
    curves = [Curve(name, [experiment]) for name, experiment in runs.items()]
    series = [curve.read(store, "validation") for curve in curves]
    picture = plot("validation", curves, series, (), "")[".png"]
    return picture, "Accuracy on held-out images, epoch by epoch"
