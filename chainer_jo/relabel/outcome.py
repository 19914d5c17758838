"""What the ways of relabelling come to, and what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.relabel import tuning
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.labelled_images import LabelledImages
from chainer_jo.relabel.report import RelabelReport
from chainer_jo.relabel.trained_network import TrainedNetwork
from chainer_jo.report.curves import Curve
from chainer_jo.report.grid import aligned
from chainer_jo.report.plot import plot

#: What is held out where there is no validation set.
HELD_OUT = "held-out images, labels as given"


@dataclass(frozen=True)
class Trial:
    """Settings that were tried in a short run: the share of held-out images that were classified as
    labelled, None if it diverged."""

    alpha: float
    beta: float
    learning_rate: float
    accuracy: float | None
    chosen: bool = False


@dataclass(frozen=True)
class Accuracy:
    """Of a network trained on the labels as given and of one trained on the new ones, in [0, 1], on
    ``number`` images; None if it diverged."""

    of: str
    number: int
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything that is to be written.

    Attributes
    ----------
    curves : runs whose validation accuracy is drawn, by what they are called.
    about : how it was computed, in lines of a name and a value.
    """

    labels: CorrectedLabels
    network: TrainedNetwork
    trials: Sequence[Trial]
    accuracies: Sequence[Accuracy]
    about: dict[str, str]
    curves: dict[str, Experiment] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """See `doubt`."""
        given = self.labels.given
        return doubt(self.accuracies, float(np.bincount(given).max() / len(given)))

    def with_true_labels(self, images: LabelledImages) -> Outcome:
        """The same for the same images, of which true labels are known."""
        return replace(self, labels=replace(self.labels, images=images))


def trial_rows(trials: Sequence[Trial]) -> list[list[str]]:
    """A table of text, header first."""
    rows = [["alpha", "beta", "learning rate", "held-out accuracy", ""]]
    for trial in trials:
        accuracy = "diverged" if trial.accuracy is None else f"{100 * trial.accuracy:.1f}"
        numbers = (f"{v:g}" for v in (trial.alpha, trial.beta, trial.learning_rate))
        rows.append([*numbers, accuracy, "chosen" if trial.chosen else ""])
    return rows


def choice(trials: Sequence[Trial]) -> str:
    """Why the chosen settings were, in words."""
    if not trials[0].chosen:
        if trials[0].accuracy is None:
            return "the first, which are the default, diverged"
        return "better than the first, which are the default, by more than two standard errors"
    return "the first, which are the default: none are better by more than two standard errors"


def doubt(accuracies: Sequence[Accuracy], most_frequent: float) -> str:
    """What has to be said if a network trained on the new labels is surely worse than one trained
    on those given, or if neither surely learnt anything; else empty.

    Parameters
    ----------
    most_frequent : share of the given labels that are the most frequent one.
    """
    for accuracy in accuracies:
        shares = accuracy.after, accuracy.before
        if None not in shares and tuning.surely_best(shares, accuracy.number) == 1:
            return (
                f"The new labels are likely worse than those given: a network trained on them "
                f"reaches {_percent(accuracy.after)} instead of {_percent(accuracy.before)} on "
                f"{accuracy.of}. More --epochs or another --learning-rate may help."
            )
    for accuracy in accuracies:
        shares = [0.0 if s is None else s for s in (accuracy.before, accuracy.after)]
        if accuracy.of == HELD_OUT and not any(
            tuning.surely_best((most_frequent, share), accuracy.number) for share in shares
        ):
            return (
                f"Nothing shows that the new labels are good: neither network is surely better on "
                f"{accuracy.of}, {accuracy.number:,} in number, than always naming the most "
                f"frequent label, which {_percent(most_frequent)} of all images have."
            )
    return ""


def accuracy_rows(accuracies: Sequence[Accuracy]) -> list[list[str]]:
    """A table of text, header first."""
    rows = [["accuracy on", "images", "labels as given", "new labels"]]
    for accuracy in accuracies:
        shares = (
            "diverged" if share is None else f"{100 * share:.1f}"
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
    number, changed = len(labels.given), int(labels.changed.sum())
    lines = [f"{changed:,} of {number:,} labels changed ({100 * changed / number:.1f} %)"]
    if known := right(labels):
        lines += [known, "", *aligned(score_rows(labels))]
    lines += ["", *aligned(accuracy_rows(outcome.accuracies))]
    return [*lines, "", doubtful] if (doubtful := outcome.doubt) else lines


def report(outcome: Outcome, name: str, store: RunStore) -> RelabelReport:
    """The same for a browser."""
    labels = outcome.labels
    number, changed = len(labels.given), int(labels.changed.sum())
    tiles = [
        (f"{changed:,}", f"of {number:,} labels changed ({100 * changed / number:.1f} %)"),
        *(
            (f"{_percent(a.before)} → {_percent(a.after)}", f"accuracy on {a.of}")
            for a in outcome.accuracies
        ),
    ]
    chosen = {}
    tables = {"Accuracy of a network trained on them": accuracy_rows(outcome.accuracies)}
    for rule, scores in list(labels.scores().items())[-1:]:
        before, after = _percent(scores.right_before), _percent(scores.right_after)
        tiles[1:1] = [
            (f"{before} → {after}", f"of the labels right ({scores.known:,} true labels known)"),
            (_percent(scores.f1), f"F1 of wrong labels found: {rule}"),
        ]
        tables = {"Wrong labels found": score_rows(labels), **tables}
    if len(outcome.trials) > 1:
        tables["Settings tried in short runs"] = trial_rows(outcome.trials)
        chosen = {"chosen settings": choice(outcome.trials)}
    return RelabelReport(
        f"Corrected labels: {name}",
        _about(outcome),
        tiles,
        tables,
        _plot(outcome.curves, store) if outcome.curves else None,
        {**outcome.about, **chosen},
    )


def _about(outcome: Outcome) -> str:
    labels = outcome.labels
    about = f"{len(labels.given):,} images of {len(labels.images.class_names)} classes."
    if doubtful := outcome.doubt:
        about += f" {doubtful}"
    if any(accuracy.of == HELD_OUT for accuracy in outcome.accuracies):
        about += (
            " Labels of held-out images are as wrong as the others, so a network that is always "
            "right reaches as much accuracy there as there are right labels, not 100 %."
        )
    if labels.threshold is not None:
        about += (
            f" Those to look at, changed or not, are labels of a probability of at most "
            f"{labels.threshold:.3f}: there precision and recall are expected to balance best."
        )
    return about


def _percent(share: float | None) -> str:
    return "diverged" if share is None else f"{100 * share:.1f} %"


def _plot(runs: dict[str, Experiment], store: RunStore) -> tuple[bytes, str]:
    curves = [Curve(name, [experiment]) for name, experiment in runs.items()]
    series = [curve.read(store, "validation") for curve in curves]
    picture = plot("validation", curves, series, (), "")[".png"]
    return picture, "Accuracy on held-out images, epoch by epoch"
