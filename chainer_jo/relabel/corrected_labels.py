"""What the labels of people's own images have become."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo import files
from chainer_jo.datasets.labelled_data import UNKNOWN
from chainer_jo.relabel.label_errors import LabelErrors
from chainer_jo.relabel.labelled_images import LabelledImages

COLUMNS = ("path", "given", "new", "probability_given", "probability_new", "changed")


@dataclass(frozen=True, eq=False)
class CorrectedLabels:
    """n images, and what is thought of their labels."""

    images: LabelledImages
    errors: LabelErrors

    def scores(self) -> dict[str, Scores]:
        """How right it is to call labels wrong, by rule; empty without true labels."""
        true = self.images.true_labels
        known = true != UNKNOWN
        if not known.any():
            return {}
        errors = self.errors
        wrong = (errors.given != true)[known]
        right_after = float((errors.new == true)[known].mean())
        rules = {"it is changed": errors.changed, "it is called wrong": errors.wrong}
        return {
            rule: Scores.of(called[known], wrong, right_after) for rule, called in rules.items()
        }

    def write_table(self, path: Path) -> None:
        """``labels.csv``: a row for every image, in the order they came in, with every column that
        came in. A column that has the name of one of `COLUMNS` gets ``given:`` before it."""
        names = self.images.class_names
        others = {
            f"given:{name}" if name in COLUMNS else name: values
            for name, values in self.images.columns.items()
        }
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*COLUMNS, *others])
        writer.writerows(
            zip(
                self.images.paths,
                (names[k] for k in self.errors.given),
                (names[k] for k in self.errors.new),
                (f"{p:.6f}" for p in self.errors.probability_given),
                (f"{p:.6f}" for p in self.errors.probability_new),
                ("yes" if changed else "no" for changed in self.errors.changed),
                *others.values(),
                strict=True,
            )
        )
        files.write_text(path, out.getvalue())

    def write_probabilities(self, path: Path) -> None:
        """``soft_labels.npz``: `paths`, `labels` (n, c) and `class_names`."""
        arrays = {
            "paths": np.array(list(self.images.paths)),
            "labels": self.errors.probabilities.astype(np.float32),
            "class_names": np.array(self.images.class_names),
        }
        files.write(path, lambda file: np.savez_compressed(file, **arrays))


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
