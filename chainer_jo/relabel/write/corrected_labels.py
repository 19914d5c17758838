"""Corrected labels of a user's images, and an audit: a random sample that is reviewed by hand.

A network learns errors that depend on the appearance of images like correct labels, so no estimate
from labels reveals them. The wrong labels in a random sample do.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainer_jo import files, seeds
from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.relabel.judge.label_errors import COLUMNS as VERDICT_COLUMNS
from chainer_jo.relabel.judge.label_errors import LabelErrors
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.labelled_images import LabelledImages
from chainer_jo.text import percent

COLUMNS = ("path", *VERDICT_COLUMNS, "reviewed")
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
    """Images (n), the verdicts on their labels, and their corrected labels.

    Attributes
    ----------
    reviewed : int (n,), labels reviewed by hand, which count, UNKNOWN (-1) for the other images.
    true : int (n,), true labels, UNKNOWN where there is none; classes that no image is given have
        larger numbers.
    least : a new label is taken if it is more probable than this.
    """

    images: LabelledImages
    errors: LabelErrors
    reviewed: np.ndarray | None = None
    true: np.ndarray | None = None
    least: float = 0.0

    @cached_property
    def new(self) -> np.ndarray:
        """The corrected labels, int (n,)."""
        errors = self.errors
        new = np.where(errors.probability_new > self.least, errors.new, errors.given)
        return new if self.reviewed is None else np.where(self.judged, self.reviewed, new)

    @property
    def changed(self) -> np.ndarray:
        """Images with another label than before, bool (n,)."""
        return self.new != self.errors.given

    @property
    def judged(self) -> np.ndarray:
        """Images whose label was reviewed by hand, bool (n,)."""
        if self.reviewed is None:
            return np.zeros(len(self.images), bool)
        return self.reviewed != UNKNOWN

    @property
    def unsure(self) -> np.ndarray:
        """Images that keep the given label although it was judged wrong, bool (n,)."""
        return self.errors.wrong & ~self.changed & ~self.judged

    def scores(self) -> dict[str, Scores]:
        """Scores of finding wrong labels, by rule; empty without true labels."""
        if self.true is None:
            return {}
        known = self.true != UNKNOWN
        wrong = (self.errors.given != self.true)[known]
        right = float(1 - wrong.mean()), float((self.new == self.true)[known].mean())
        found, rules = {}, {"it is changed": self.changed, "it is called wrong": self.errors.wrong}
        for rule, called in rules.items():
            hits, judged = int((called[known] & wrong).sum()), int(called[known].sum())
            precision, recall = hits / max(judged, 1), hits / max(int(wrong.sum()), 1)
            f1 = 2 * hits / max(judged + int(wrong.sum()), 1)
            found[rule] = Scores(len(wrong), precision, recall, f1, *right)
        return found

    def table(self) -> str:
        """``labels.csv``: a row for every image, in the order of the input, with all its columns.
        One with the name of one of `COLUMNS` gets the prefix ``given:``."""
        names, errors = self.images.class_names, self.errors
        others = renamed(self.images.columns, COLUMNS)
        probability_new = errors.probabilities[np.arange(len(self.new)), self.new]
        columns: dict[str, Iterable] = {
            "path": self.images.paths,
            "given": (names[k] for k in errors.given),
            "new": (names[k] for k in self.new),
            # Enough digits to sort by: the most certain errors have probabilities close to 0.
            "probability_given": (f"{p:.9g}" for p in errors.probability_given),
            "probability_new": (f"{p:.9g}" for p in probability_new),
            "changed": np.where(self.changed, "yes", "no"),
            "wrong": np.where(errors.wrong, "yes", "no"),
            "rank": errors.rank,
            "network": (names[k] for k in errors.network),
            "reviewed": np.where(self.judged, "yes", "no"),
        }
        out = io.StringIO()
        label_table.write(out, {**columns, **others})
        return out.getvalue()

    def write_probabilities(self, path: Path) -> None:
        """``soft_labels.npz``, as docs/own-data-reference.md describes it."""
        errors = self.errors
        arrays: dict[str, Any] = {
            "paths": np.array(list(self.images.paths)),
            "labels": errors.probabilities.astype(np.float32),
            "class_names": np.array(self.images.class_names),
            "network": errors.predicted.astype(np.float32),
            "transition": errors.transition,
            "share_wrong": np.float64(errors.share_wrong),
            "share_wrong_by_class": errors.share_wrong_by_class,
        }
        files.write(path, lambda file: np.savez_compressed(file, **arrays))

    def digest(self, drop_unsure: bool) -> str:
        """16 hexadecimal digits of the data, its other columns, the corrected labels and, with
        ``drop_unsure``, the images left out."""
        digest = hashlib.sha256(self.images.fingerprint.encode())
        kept = np.where(self.unsure & drop_unsure, UNKNOWN, self.new)
        digest.update(kept.astype(np.int64).data)
        for column in self.images.columns.items():
            digest.update(json.dumps(column).encode())
        return digest.hexdigest()[:16]


def drawn_to_judge(number: int, images: int, seed: int) -> np.ndarray:
    """Rows of the images of the audit, int (min(number, images),); the seed decides them."""
    return np.sort(seeds.generator(seed, "audit").permutation(images)[:number])


def renamed(columns: Mapping[str, list[str]], ours: Sequence[str]) -> dict[str, list[str]]:
    """Columns of the input without the names of ours or of each other, in any case: the prefix
    ``given:`` is added as often as needed."""
    taken, unique = {name.casefold() for name in ours}, {}
    for name, values in columns.items():
        while name.casefold() in taken:
            name = f"given:{name}"
        taken.add(name.casefold())
        unique[name] = values
    return unique


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Share of wrong labels by m random images reviewed by hand, ``wrong`` or not, and by the
    probabilities of being wrong, of these images and on average of all (``estimate``): estimate +
    mean(wrong - probability). It has no bias, whatever the noise, and a narrower interval than the
    share of the reviewed images alone."""

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
