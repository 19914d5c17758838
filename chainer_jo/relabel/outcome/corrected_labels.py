"""Corrected labels of a user's images, and an audit: a random sample that is reviewed by hand.

A network learns errors that depend on the appearance of images like correct labels, so no estimate
from labels reveals them. The wrong labels in a random sample do.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from chainer_jo import seeds
from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.relabel.estimate.label_errors import LabelErrors
from chainer_jo.relabel.read.labelled_images import LabelledImages
from chainer_jo.text import percent

#: Half the width of an interval of 95 %, in standard errors.
Z = 1.96


class Scores(NamedTuple):
    """Scores on the ``known`` images that have a true label, in [0, 1]: of "this label is wrong",
    and label accuracy before and after."""

    known: int
    precision: float
    recall: float
    f1: float
    right_before: float
    right_after: float


@dataclass(frozen=True, eq=False)
class CorrectedLabels:
    """Images (n), the estimates of their labels, and their corrected labels.

    Attributes
    ----------
    review : int (n,), labels reviewed by hand, which count, UNKNOWN (-1) for the other images.
    true : int (n,), true labels, UNKNOWN where there is none; classes that no image is given have
        larger numbers.
    least : a new label is taken if it is more probable than this.
    """

    images: LabelledImages
    errors: LabelErrors
    review: np.ndarray | None = None
    true: np.ndarray | None = None
    least: float = 0.0

    @cached_property
    def new(self) -> np.ndarray:
        """The corrected labels, int (n,)."""
        errors = self.errors
        new = np.where(errors.probability_new > self.least, errors.new, errors.given)
        return new if self.review is None else np.where(self.reviewed, self.review, new)

    @property
    def changed(self) -> np.ndarray:
        """Images with another label than before, bool (n,)."""
        return self.new != self.errors.given

    @property
    def reviewed(self) -> np.ndarray:
        """Images whose label was reviewed by hand, bool (n,)."""
        if self.review is None:
            return np.zeros(len(self.images), bool)
        return self.review != UNKNOWN

    @property
    def unsure(self) -> np.ndarray:
        """Images that keep the given label although it is estimated to be wrong, bool (n,)."""
        return self.errors.wrong & ~self.changed & ~self.reviewed

    def scores(self) -> dict[str, Scores]:
        """Scores of finding wrong labels, by rule; empty without true labels."""
        if self.true is None:
            return {}
        known = self.true != UNKNOWN
        wrong = (self.errors.given != self.true)[known]
        right = float(1 - wrong.mean()), float((self.new == self.true)[known].mean())
        found, rules = {}, {"it is changed": self.changed, "it is called wrong": self.errors.wrong}
        for rule, called in rules.items():
            hits, number = int((called[known] & wrong).sum()), int(called[known].sum())
            precision, recall = hits / max(number, 1), hits / max(int(wrong.sum()), 1)
            f1 = 2 * hits / max(number + int(wrong.sum()), 1)
            found[rule] = Scores(len(wrong), precision, recall, f1, *right)
        return found

    def digest(self, drop_unsure: bool) -> str:
        """16 hexadecimal digits of the data, its other columns, the corrected labels and, with
        ``drop_unsure``, the images left out."""
        digest = hashlib.sha256(self.images.fingerprint.encode())
        kept = np.where(self.unsure & drop_unsure, UNKNOWN, self.new)
        digest.update(kept.astype(np.int64).data)
        for column in (self.images.header, *self.images.columns.items()):
            digest.update(json.dumps(column).encode())
        return digest.hexdigest()[:16]


def drawn_for_review(number: int, images: int, seed: int) -> np.ndarray:
    """Rows of the images of the audit, int (min(number, images),), in a random order: the first k
    are a sample, too. The seed decides them."""
    return seeds.generator(seed, "audit").permutation(images)[:number]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Estimated share of wrong labels: ``estimate``, the mean probability of all images, corrected
    by m random ones that were reviewed by hand: estimate + mean(wrong - probability). The result
    has no bias under any noise, and a narrower interval than the reviewed images alone give.

    Attributes
    ----------
    wrong, probability : (m,), labels found wrong, and their probabilities of being wrong.
    """

    wrong: np.ndarray
    probability: np.ndarray
    estimate: float

    @property
    def share(self) -> float:
        """Share of wrong labels among all images, in [0, 1]."""
        return min(max(0.0, self.estimate + float((self.wrong - self.probability).mean())), 1.0)

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of 95 % for the share, in [0, 1]."""
        # With a wrong and a right image more (Agresti and Caffo): few images, none of them wrong,
        # would have hardly any variance.
        mean = self.probability.mean()
        missed = np.append(self.wrong - self.probability, (1 - mean, -mean))
        middle = self.estimate + missed.mean()
        half = Z * missed.std() / math.sqrt(len(missed))
        return max(0.0, float(middle - half)), min(1.0, float(middle + half))

    def in_words(self) -> str:
        """The result in words, beside the estimate without review."""
        low, high = self.interval
        missed = ". Some errors depend on the appearance of images, and the new labels keep them."
        return (
            f"audit: {self.wrong.sum():,} of {len(self.wrong):,} randomly drawn labels are wrong; "
            f"with the probabilities of all labels an estimated {percent(self.share)} are wrong "
            f"(95 %: {100 * low:.1f} to {percent(high)}); estimate without review: "
            f"{percent(self.estimate)}{missed if self.estimate < low else ''}"
        )
