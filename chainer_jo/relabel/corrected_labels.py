"""The corrected labels of people's own images, and a few images drawn to be judged by eye.

Errors that follow the looks of images are learnt like what is right, so that nothing in the labels
gives them away. A share that somebody counted in a random sample does.
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
from typing import Any

import numpy as np

from chainer_jo import files, seeds
from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.relabel import label_table
from chainer_jo.relabel.label_errors import COLUMNS as SAID
from chainer_jo.relabel.label_errors import LabelErrors
from chainer_jo.relabel.labelled_images import LabelledImages

COLUMNS = ("path", *SAID, "reviewed")


@dataclass(frozen=True, eq=False)
class CorrectedLabels:
    """n images, the verdict on their labels, and the labels that they get.

    Attributes
    ----------
    reviewed : int (n,), the labels that somebody has judged by eye, UNKNOWN (-1) for the others;
        what was judged counts, whatever the method says.
    true : int (n,), the true labels, UNKNOWN where they are not known; those of other classes than
        the images have are above them.
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
        """Whose label is another now, bool (n,)."""
        return self.new != self.errors.given

    @property
    def judged(self) -> np.ndarray:
        """Which labels somebody has judged by eye, bool (n,)."""
        if self.reviewed is None:
            return np.zeros(len(self.images), bool)
        return self.reviewed != UNKNOWN

    @property
    def unsure(self) -> np.ndarray:
        """Which labels stay as they were given though they are called wrong, bool (n,)."""
        return self.errors.wrong & ~self.changed & ~self.judged

    def scores(self) -> dict[str, Scores]:
        """How right it is to call labels wrong, by rule; empty without true labels."""
        if self.true is None:
            return {}
        known = self.true != UNKNOWN
        wrong = (self.errors.given != self.true)[known]
        right_after = float((self.new == self.true)[known].mean())
        rules = {"it is changed": self.changed, "it is called wrong": self.errors.wrong}
        return {
            rule: Scores.of(called[known], wrong, right_after) for rule, called in rules.items()
        }

    def table(self) -> str:
        """``labels.csv``: a row for every image, in the order they came in, with every column that
        came in. A column that has the name of one of `COLUMNS` gets ``given:`` before it."""
        names, said = self.images.class_names, self.errors
        others = renamed(self.images.columns, COLUMNS)
        probability_new = said.probabilities[np.arange(len(self.new)), self.new]
        columns: dict[str, Iterable] = {
            "path": self.images.paths,
            "given": (names[k] for k in said.given),
            "new": (names[k] for k in self.new),
            # Enough digits to sort by: the surest errors differ in what is next to nothing.
            "probability_given": (f"{p:.9g}" for p in said.probability_given),
            "probability_new": (f"{p:.9g}" for p in probability_new),
            "changed": np.where(self.changed, "yes", "no"),
            "wrong": np.where(said.wrong, "yes", "no"),
            "rank": said.rank,
            "network": (names[k] for k in said.network),
            "reviewed": np.where(self.judged, "yes", "no"),
        }
        out = io.StringIO()
        label_table.write(out, {**columns, **others})
        return out.getvalue()

    def write_probabilities(self, path: Path) -> None:
        """``soft_labels.npz``: `paths`, `labels` (n, c), `class_names`, `network` (n, c), what the
        network says before the given label counts, `confusion` (c, c), `share_wrong` and
        `share_wrong_by_class` (c,)."""
        said = self.errors
        arrays: dict[str, Any] = {
            "paths": np.array(list(self.images.paths)),
            "labels": said.probabilities.astype(np.float32),
            "class_names": np.array(self.images.class_names),
            "network": said.predicted.astype(np.float32),
            "confusion": said.transition,
            "share_wrong": np.float64(said.share_wrong),
            "share_wrong_by_class": said.share_wrong_by_class,
        }
        files.write(path, lambda file: np.savez_compressed(file, **arrays))

    def digest(self, drop_unsure: bool) -> str:
        """16 hexadecimal digits that follow from the data, its other columns, what the labels
        become and, with ``drop_unsure``, which images go."""
        digest = hashlib.sha256(self.images.fingerprint.encode())
        kept = np.where(self.unsure & drop_unsure, UNKNOWN, self.new)
        digest.update(kept.astype(np.int64).data)
        for column in self.images.columns.items():
            digest.update(json.dumps(column).encode())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Scores:
    """Of the images whose true label is known; shares in [0, 1].

    ``precision``, ``recall`` and ``f1`` of "this label is wrong"; ``right_before`` and
    ``right_after``, the labels that are right.
    """

    known: int
    precision: float
    recall: float
    f1: float
    right_before: float
    right_after: float

    @staticmethod
    def of(called: np.ndarray, wrong: np.ndarray, right_after: float) -> Scores:
        """Of labels that are called wrong, and those that are, bool (n,)."""
        found = int((called & wrong).sum())
        return Scores(
            len(wrong),
            found / max(int(called.sum()), 1),
            found / max(int(wrong.sum()), 1),
            2 * found / max(int(called.sum() + wrong.sum()), 1),
            float(1 - wrong.mean()),
            right_after,
        )


#: Standard errors to either side of an interval of 95 %.
Z = 1.96


def drawn_to_judge(number: int, images: int, seed: int) -> np.ndarray:
    """Rows of the images to be judged, int (min(number, images),): the same ones for a seed."""
    rng = seeds.generator(seed, "audit")
    return np.sort(rng.permutation(images)[:number])


def renamed(columns: Mapping[str, list[str]], ours: Sequence[str]) -> dict[str, list[str]]:
    """Columns that came in, to stand beside ours: ``given:`` comes before the name of one, as often
    as it takes, that has the same name as another, in any case."""
    taken, found = {name.casefold() for name in ours}, {}
    for name, values in columns.items():
        while name.casefold() in taken:
            name = f"given:{name}"
        taken.add(name.casefold())
        found[name] = values
    return found


@dataclass(frozen=True)
class ByEye:
    """What was found in the images that somebody judged: how many, and how many labels as given
    were wrong."""

    judged: int
    wrong: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % for the share of wrong labels, in [0, 1]."""
        n, share = self.judged, self.wrong / self.judged
        middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def in_words(self, estimate: float) -> str:
        """Beside the share of wrong labels that was estimated from the labels, in [0, 1]."""
        low, high = self.interval
        words = (
            f"by eye: {self.wrong:,} of {self.judged:,} labels drawn at random are wrong, "
            f"{100 * self.wrong / self.judged:.1f} % (95 %: {100 * low:.1f} to {100 * high:.1f} %);"
            f" estimated from the labels: {100 * estimate:.1f} %"
        )
        if estimate < low:
            return words + ". Some errors follow the looks of images, and the new labels keep them."
        return words
