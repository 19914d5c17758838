"""Detection and correction of label errors from out-of-fold probabilities; no true label is
needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.relabel.estimate import label_noise
from chainer_jo.text import percent

#: The columns of `LabelErrors.table`, which are the first of ``labels.csv`` too.
COLUMNS = (
    "given",
    "new",
    "probability_given",
    "probability_new",
    "changed",
    "wrong",
    "rank",
    "network",
)
#: Limits beyond which there is `doubt`. The third is the number of wrong labels per error that the
#: network expects to make, more where images are few; the last, the share of a class's labels kept.
MIN_IMAGES_PER_CLASS = 40
MIN_EXPECTED_ACCURACY, MAX_SHARE_WRONG = 0.6, 0.6
MIN_WRONG_PER_NETWORK_ERROR = 0.2
MIN_SHARE_KEPT = 0.2

#: Prior probability of the second of `label_noise.explanations`; labels cannot tell them apart.
ERRORS_OF_LABELS = 0.55

ClassNames = Sequence[Any] | np.ndarray


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Estimated errors of n given labels; classes are counted from 0.

    Attributes
    ----------
    class_names : of the c classes.
    given : int (n,); the majority if images have several labels, ties decided by the network.
    probabilities : p(true | x, given), float64 (n, c): new soft labels. All labels of an image
        count as evidence.
    predicted : p(true | x), float64 (n, c), before the given label counts as evidence.
    wrong : bool (n,), labels estimated to be wrong, by the threshold of the highest expected F1. A
        label that is barely more probable than its alternatives deserves a review, but no change.
    transition : T (c, c), the estimated p(given j | true k); of several columns of labels the
        common one.
    duplicates : groups of images that are the same or nearly, int arrays of rows.
    index : row labels of the table: the index of a DataFrame that came in, else None.
    votes : int (n, m), all labels of every image, UNKNOWN (-1) in empty places; None if each has
        one.
    """

    class_names: ClassNames
    given: np.ndarray
    probabilities: np.ndarray
    predicted: np.ndarray
    wrong: np.ndarray
    transition: np.ndarray
    duplicates: Sequence[np.ndarray] = ()
    index: Any = None
    votes: np.ndarray | None = None

    @cached_property
    def new(self) -> np.ndarray:
        """The most probable class of each image, int (n,)."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def changed(self) -> np.ndarray:
        """Images whose most probable class is not the given label, bool (n,)."""
        return self.new != self.given

    @cached_property
    def network(self) -> np.ndarray:
        """The network's prediction, int (n,), before the given label counts as evidence."""
        return self.predicted.argmax(axis=1)

    @cached_property
    def probability_given(self) -> np.ndarray:
        """The probability (n,) that the given label is correct, lowest for certain errors."""
        return self.probabilities[np.arange(len(self.given)), self.given]

    @cached_property
    def probability_new(self) -> np.ndarray:
        """The probability (n,) of the new label."""
        return self.probabilities.max(axis=1)

    @cached_property
    def rank(self) -> np.ndarray:
        """Review order, int (n,): 1 is the most certain error."""
        return np.argsort(np.argsort(self.probability_given, kind="stable")) + 1

    @property
    def share_wrong(self) -> float:
        """The estimated share of given labels that are wrong, in [0, 1]; more are wrong if errors
        follow the appearance of images."""
        return float(1 - self.probability_given.mean())

    @property
    def share_wrong_by_class(self) -> np.ndarray:
        """`share_wrong` (c,) by given label; 0 for a label without images."""
        count = np.bincount(self.given, minlength=len(self.class_names))
        wrong = np.bincount(self.given, 1 - self.probability_given, len(self.class_names))
        return wrong / np.maximum(count, 1)

    @property
    def share_wrong_by_column(self) -> np.ndarray:
        """`share_wrong` (m,) of each column of labels; 0 for an empty column."""
        wrong = 1 - np.take_along_axis(self.probabilities, self._every_label, axis=1)
        given = self._every_label != UNKNOWN
        return np.where(given, wrong, 0).sum(axis=0) / np.maximum(given.sum(axis=0), 1)

    @property
    def _every_label(self) -> np.ndarray:
        """All labels of every image, int (n, m), UNKNOWN in empty places."""
        return self.given[:, None] if self.votes is None else self.votes

    @cached_property
    def doubt(self) -> str:
        """Reason, in a sentence, why the new labels may be no better than the given labels; else
        empty. docs/label-errors.md explains the limits."""
        if reason := self._reason_for_doubt():
            return f"The new labels may be no better than the given labels: {reason}."
        return ""

    def _reason_for_doubt(self) -> str:
        n, c = self.probabilities.shape
        errs = 1 - float(self.predicted.max(axis=1).mean())
        number = (self._every_label != UNKNOWN).sum(axis=0)
        wrong = float(np.average(self.share_wrong_by_column, weights=number))
        if n < (least := MIN_IMAGES_PER_CLASS * c):
            return f"{n:,} images of {c} classes, expected {least:,} or more"
        guessed = ((self.predicted @ self.transition).argmax(axis=1) == self.given).mean()
        usual = np.bincount(self.given).max() / n
        different = n - sum(len(group) - 1 for group in self.duplicates)  # copies are no evidence
        if guessed - usual < 2 * np.sqrt(usual * (1 - usual) / different):
            return (
                f"a network predicts {percent(guessed)} of the labels, hardly more than the most "
                f"frequent label's {percent(usual)}; an estimated {percent(wrong, 0)} are wrong"
            )
        if wrong > MAX_SHARE_WRONG:
            most = percent(MAX_SHARE_WRONG, 0)
            return f"an estimated {percent(wrong, 0)} are wrong, expected {most} or less"
        if 1 - errs < MIN_EXPECTED_ACCURACY:
            return (
                "the expected accuracy of a network on images whose label it has not seen is "
                f"{percent(1 - errs, 0)}, expected {percent(MIN_EXPECTED_ACCURACY, 0)} or more"
            )
        ratio = max(MIN_WRONG_PER_NETWORK_ERROR, 2 * least / n)
        if wrong < ratio * errs:
            return (
                f"an estimated {percent(wrong)} are wrong, less than {ratio:.1f} times the "
                f"network's expected error of {percent(errs)}. Either few labels are wrong, or "
                "the errors depend on the appearance of images and cannot be detected from labels"
            )
        given, left = (np.bincount(labels, minlength=c) for labels in (self.given, self.new))
        classes = np.flatnonzero(left < MIN_SHARE_KEPT * given).tolist()
        gone = ", ".join(f"{self.class_names[k]}" for k in classes)
        return f"hardly any image labelled {gone} keeps its label" if gone else ""

    def columns(self) -> dict[str, np.ndarray]:
        """The table, column by column, with classes by their names."""
        names = np.asarray(self.class_names)
        values = {name: getattr(self, name) for name in COLUMNS}
        return values | {name: names[values[name]] for name in ("given", "new", "network")}

    def table(self) -> Any:
        """One row per image in input order: a pandas DataFrame of `COLUMNS`, or a dictionary of
        arrays (n,) without pandas."""
        try:
            import pandas
        except ImportError:
            return self.columns()
        return pandas.DataFrame(self.columns(), index=self.index)


def find_label_errors(
    given: np.ndarray,
    probabilities: np.ndarray,
    class_names: ClassNames | None = None,
    duplicates: Sequence[np.ndarray] = (),
) -> LabelErrors:
    """Errors of given labels, int (n,), or (n, m) with UNKNOWN (-1) in empty places, by Bayes' rule
    under two `label_noise.explanations` of them. Rows of the probabilities (n, c) count as shares;
    the network has not been trained on the labels. Others: see `LabelErrors`."""
    totals = probabilities.sum(axis=1, keepdims=True, dtype=np.float64)
    probabilities = probabilities / np.maximum(totals, np.finfo(np.float64).tiny)
    votes, likely = None if given.ndim == 1 else given, np.zeros(probabilities.shape)
    pairs = label_noise.explanations(probabilities, given)
    for weight, (s, t) in zip((1 - ERRORS_OF_LABELS, ERRORS_OF_LABELS), pairs, strict=True):
        evidence = (given, t) if votes is None else label_noise.by_column(s, votes, t)
        likely += weight * label_noise.posterior(s, *evidence)
    predicted, transition = pairs[0]
    given = label_noise.majority(given, predicted)
    wrong = 1 - likely[np.arange(len(given)), given]
    names = range(probabilities.shape[1]) if class_names is None else class_names
    estimates = given, likely, predicted, wrong >= best_threshold(wrong), transition
    return LabelErrors(names, *estimates, duplicates, votes=votes)


def best_threshold(wrong: np.ndarray) -> float:
    """Threshold on the probabilities (n,) of being wrong that gives the highest expected F1; 1 if
    less than half a label is expected to be wrong. The expected F1 of k labels that are called
    wrong is about twice the sum of their probabilities over k plus the sum of all."""
    ordered = np.sort(wrong)[::-1]
    if ordered.sum() < 0.5:
        return 1.0
    f1 = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + ordered.sum())
    return float(ordered[f1.argmax()])
