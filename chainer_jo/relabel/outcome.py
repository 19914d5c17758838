"""The outcome of a relabelling, in lines for the terminal and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.relabel.corrected_labels import ByEye, CorrectedLabels
from chainer_jo.relabel.labelled_images import LabelledImages
from chainer_jo.relabel.report import RelabelReport
from chainer_jo.relabel.trained_network import TrainedNetwork
from chainer_jo.report.curves import Curve
from chainer_jo.report.grid import aligned
from chainer_jo.report.words import counted

#: Standard errors that a difference has to have.
CERTAIN = 2.0
#: Rows of the tables: classes in the terminal, confusions, groups of duplicates.
MOST_CLASSES, MOST_CONFUSED, MOST_DUPLICATES = 10, 10, 50
#: The least share of a class that is shown as confused with another.
SHOWN = 0.005


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
    """Everything that a relabelling writes.

    Attributes
    ----------
    network : the one trained on the new labels; None if none is.
    curves : runs whose validation accuracy is drawn, by what they are called.
    about : how it was computed, in lines of a name and a value.
    audit : rows of the images that were drawn to be judged by eye.
    """

    labels: CorrectedLabels
    network: TrainedNetwork | None
    accuracies: Sequence[Accuracy]
    about: dict[str, str]
    curves: dict[str, Experiment] = field(default_factory=dict)
    audit: np.ndarray = field(default_factory=lambda: np.arange(0))

    @property
    def doubt(self) -> str:
        """Why the new labels may be no better than the given ones; empty if nothing says so."""
        return self.labels.errors.doubt or doubt(self.accuracies)

    @property
    def by_eye(self) -> ByEye | None:
        """What was found in the images that were drawn; None until all are judged: those that the
        report lists besides are judged first, and more of them are wrong."""
        labels, drawn = self.labels, self.audit
        if not len(drawn) or not labels.judged[drawn].all():
            return None
        wrong = labels.new[drawn] != labels.errors.given[drawn]
        return ByEye(len(drawn), int(wrong.sum()))


def doubt(accuracies: Sequence[Accuracy]) -> str:
    """A warning if a network trained on the new labels is surely worse than one trained on those
    given; else empty."""
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


def estimated(labels: CorrectedLabels) -> str:
    """How many labels as given are thought to be wrong, in words."""
    return f"estimated: {_percent(labels.errors.share_wrong)} of the labels as given are wrong"


def class_rows(labels: CorrectedLabels, most: int | None = None) -> list[list[str]]:
    """A table of text, header first: the classes with the largest shares of wrong labels first.

    Parameters
    ----------
    most : the number of classes shown; None: all.
    """
    names, errors = labels.images.class_names, labels.errors
    shares = errors.share_wrong_by_class
    count = np.bincount(errors.given, minlength=len(names))
    rows = [["label as given", "images", "estimated wrong", "changed"]]
    for k in np.argsort(-shares, kind="stable")[:most]:
        changed = int((labels.changed & (errors.given == k)).sum())
        rows.append([names[k], f"{count[k]:,}", _percent(shares[k]), f"{changed:,}"])
    return rows


def confusion_rows(labels: CorrectedLabels) -> list[list[str]]:
    """A table of text, header first: which classes are given the labels of which, the most frequent
    confusions first."""
    names, confusion = labels.images.class_names, labels.errors.confusion
    apart = np.where(np.eye(len(names), dtype=bool), 0, confusion)
    rows = [["what it is", "labelled as", "estimated share"]]
    for flat in np.argsort(-apart, axis=None, kind="stable")[:MOST_CONFUSED]:
        true, given = np.unravel_index(flat, apart.shape)
        if apart[true, given] >= SHOWN:
            rows.append([names[true], names[given], _percent(apart[true, given])])
    return rows


def summary(outcome: Outcome) -> list[str]:
    """The outcome in lines for the terminal; a doubt is the last."""
    labels, by_eye = outcome.labels, outcome.by_eye
    lines = [_changed(labels), estimated(labels)]
    if by_eye:
        lines.append(by_eye.in_words(labels.errors.share_wrong))
    elif len(outcome.audit):
        waiting = int((~labels.judged[outcome.audit]).sum())
        of = f" of {len(outcome.audit)}" if waiting < len(outcome.audit) else ""
        lines.append(
            f"audit: {waiting}{of} images drawn at random wait in the report to be judged by eye; "
            "errors that follow the looks of images show nowhere else"
        )
    if duplicates := labels.errors.duplicates:
        images = labels.images
        shown = ", ".join(repr(images.paths[i]) for i in duplicates[0][:3])
        groups = counted(len(duplicates), "group")
        lines.append(f"the same images, or nearly: {groups}, such as {shown}")
    if known := right(labels):
        lines += [known, "", *aligned(score_rows(labels))]
    lines += ["", *aligned(class_rows(labels, MOST_CLASSES))]
    if len(confused := confusion_rows(labels)) > 1:
        lines += ["", *aligned(confused)]
    if outcome.accuracies:
        lines += ["", *aligned(accuracy_rows(outcome.accuracies))]
    return [*lines, "", doubtful] if (doubtful := outcome.doubt) else lines


def report(outcome: Outcome, name: str, store: RunStore) -> RelabelReport:
    """The outcome as a page for a browser."""
    labels = outcome.labels
    tiles = [
        (f"{int(labels.changed.sum()):,}", f"of {len(labels.images):,} labels changed"),
        (_percent(labels.errors.share_wrong), "of the labels as given estimated to be wrong"),
        *(
            (
                " → ".join(_percent(p) for p in (a.before, a.after) if p is not None),
                f"accuracy on {a.of}",
            )
            for a in outcome.accuracies
        ),
    ]
    tables = {"Labels by class": class_rows(labels)}
    if len(confused := confusion_rows(labels)) > 1:
        tables["Classes confused most"] = confused
    if outcome.accuracies:
        tables["Accuracy of a network trained on them"] = accuracy_rows(outcome.accuracies)
    for rule, scores in list(labels.scores().items())[-1:]:
        before, after = _percent(scores.right_before), _percent(scores.right_after)
        tiles[1:1] = [
            (f"{before} → {after}", f"of the labels right ({scores.known:,} true labels known)"),
            (_percent(scores.f1), f"F1 of wrong labels found: {rule}"),
        ]
        tables = {"Wrong labels found": score_rows(labels), **tables}
    if duplicates := labels.errors.duplicates:
        tables["The same images, or nearly"] = _duplicate_rows(labels.images, duplicates)
    about = f"{len(labels.images):,} images of {len(labels.images.class_names)} classes."
    if by_eye := outcome.by_eye:
        about += f" {by_eye.in_words(labels.errors.share_wrong)}"
    return RelabelReport(
        f"Corrected labels: {name}",
        about,
        outcome.doubt,
        tiles,
        tables,
        _plot(outcome.curves, store) if outcome.curves else None,
        outcome.about,
    )


def _changed(labels: CorrectedLabels) -> str:
    number, changed = len(labels.images), int(labels.changed.sum())
    words = f"{changed:,} of {number:,} labels changed ({100 * changed / number:.1f} %)"
    judged = int(labels.judged.sum())
    return words + (f", {judged:,} were judged by eye" if judged else "")


def _duplicate_rows(images: LabelledImages, groups: Sequence[np.ndarray]) -> list[list[str]]:
    rows = [["images", "labels as given"]]
    for group in groups[:MOST_DUPLICATES]:
        rows.append(
            [
                ", ".join(images.paths[i] for i in group[:3]) + (", ..." if len(group) > 3 else ""),
                ", ".join(dict.fromkeys(images.class_names[images.labels[i]] for i in group)),
            ]
        )
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plot(runs: dict[str, Experiment], store: RunStore) -> tuple[bytes, str]:
    from chainer_jo.report.figure import Figure
    from chainer_jo.report.plot import plot  # matplotlib: only where something is drawn

    curves = [Curve(name, [experiment]) for name, experiment in runs.items()]
    series = [curve.read(store, "validation") for curve in curves]
    figure = Figure(0, "", "validation", curves, "")
    picture = plot(figure, series, {}, "")[".png"]
    return picture, "Accuracy on held-out images, epoch by epoch"
