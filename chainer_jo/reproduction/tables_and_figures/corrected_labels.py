"""Figure of training images with their noisy, true and corrected labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.method.noisy_split import as_used
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.run import make_split
from chainer_jo.reproduction.running.starting_labels import labels_of
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.first_step_images import (
    Captioned,
    FirstStepImages,
    draw_images,
)
from chainer_jo.reproduction.tables_and_figures.grid import Grid
from chainer_jo.reproduction.tables_and_figures.output import Page, Setting, as_csv
from chainer_jo.reproduction.tables_and_figures.plot import COLOURS

#: Rows and columns of images, and width and height of the figure.
SHAPE = 4, 5
SIZE_INCHES = 7.8, 8.2
#: Seed of the random draw.
SEED = 0
#: Mark and colour of a corrected label, by whether it is the true one.
MARKS = {True: ("✓", COLOURS[2]), False: ("✗", COLOURS[1])}


class _Drawn(NamedTuple):
    """The images drawn and their labels in words; the number of training images and, among them, of
    wrong labels before, after, and before or after the first step."""

    images: Any = ()
    rows: Sequence[dict] = ()
    total: int = 0
    before: int = 0
    after: int = 0
    either: int = 0


@dataclass(frozen=True)
class CorrectedLabelsFigure(FirstStepImages):
    """Twenty images of full size, drawn at random from those whose label was wrong before or after
    the first step: its failures are shown as often as they occur.

    Parameters
    ----------
    number : place in lists of figures; the paper has no such figure.
    load : gives the data set, whose true labels are known.
    """

    number: int
    first_step: Experiment
    load: Callable[[], LabelledData]

    name = "corrected_labels"
    title = "Corrected labels"

    @property
    def caption(self) -> str:
        return (
            f"{SHAPE[0] * SHAPE[1]} training images: noisy label → label after the first step, and "
            "the true label. Drawn at random (NumPy, seed "
            f"{SEED}) from all images whose label was wrong before or after the first step."
        )

    def page(self, store: RunStore, setting: Setting) -> Page:
        """The labels of the images drawn, by their row in ``labels.npz``."""
        drawn = self._drawn(store)
        names = ["noisy", "true", "corrected", "probability"]
        shown = [(str(r["row"]), [*map(str, list(r.values())[1:4]), f"{r['probability']:.3f}"])
                 for r in drawn.rows]  # fmt: skip
        grids = [Grid(names, shown, corner="row")]
        return Page(self.title, self.caption, [self._footnote(setting, drawn)], grids)

    def data(self, store: RunStore, setting: Setting) -> dict:
        """The labels of the images drawn, and the numbers of wrong labels."""
        drawn = self._drawn(store)
        right = sum(row["corrected"] == row["true"] for row in drawn.rows)
        return {
            **self.head(setting, bool(drawn.total)),
            "description": f"{right} of {len(drawn.rows)} labels are right after the first step.",
            "training_images": drawn.total,
            "wrong_before": drawn.before,
            "wrong_after": drawn.after,
            "wrong_before_or_after": drawn.either,
            "images": drawn.rows,
        }

    def extra_files(self, store: RunStore, setting: Setting) -> dict[str, str | bytes]:
        """The drawing, and the labels of the images drawn as CSV."""
        drawn = self._drawn(store)
        head = ["preset", "data", "precision", "row", "noisy", "true", "corrected", "probability"]
        table = [head, *([*vars(setting).values(), *row.values()] for row in drawn.rows)]
        images = []
        for image, row in zip(drawn.images, drawn.rows, strict=True):
            mark, colour = MARKS[row["corrected"] == row["true"]]
            caption = f"{row['noisy']} → {row['corrected']} {mark}\n(true: {row['true']})"
            images.append(Captioned(image, caption, colour))
        heading = "Noisy label → label after the first step"
        drawing = draw_images(images, SHAPE, SIZE_INCHES, heading, self._footnote(setting, drawn))
        return {**drawing, ".csv": as_csv(table)}

    def _footnote(self, setting: Setting, drawn: _Drawn) -> str:
        noise = self.first_step.noise
        found = (
            f"{drawn.either - drawn.after:,} of {drawn.before:,} wrong labels corrected, "
            f"{drawn.either - drawn.before:,} of {drawn.total - drawn.before:,} right labels "
            f"spoilt; {len(drawn.rows)} images drawn at random from the {drawn.either:,} with a "
            "wrong label before or after the first step"
        )
        clauses = [
            str(setting),
            f"{noise.kind} noise r = {noise.rate:g}",
            found if drawn.total else "not finished yet",
        ]
        return "; ".join(clauses) + "."

    def _drawn(self, store: RunStore) -> _Drawn:
        """Nothing before the run has finished; UserError if it ran on other data."""
        result = store.result(self.first_step)
        if result is None or store.soft_labels(self.first_step) is None:
            return _Drawn()
        return _drawn(self.first_step, self.load, store.root, result.get("sha256"))


@lru_cache(maxsize=1)  # a figure asks several times, and images may take seconds to load
def _drawn(
    first_step: Experiment, load: Callable[[], LabelledData], root: Path, result: str | None
) -> _Drawn:
    """The images drawn, and their labels; ``result`` is the digest of the first step's result."""
    data = load()
    trained_on = as_used(data, first_step.data).fingerprint()
    labels = labels_of(first_step, RunStore(root), trained_on)
    full_size = replace(first_step, data=replace(first_step.data, shrink=None))
    train, names = make_split(full_size, data).train, data.class_names
    noisy, true, corrected = train.labels, train.true_labels, labels.argmax(axis=1)
    before, after = noisy != true, corrected != true
    either = np.flatnonzero(before | after)
    number = min(SHAPE[0] * SHAPE[1], len(either))
    chosen = np.sort(np.random.default_rng(SEED).choice(either, number, replace=False))
    rows = [
        {
            "row": int(i),
            "noisy": names[noisy[i]],
            "true": names[true[i]],
            "corrected": names[corrected[i]],
            "probability": float(labels[i].max()),
        }
        for i in chosen
    ]
    counts = len(train), int(before.sum()), int(after.sum()), len(either)
    return _Drawn(train.images[chosen], rows, *counts)
