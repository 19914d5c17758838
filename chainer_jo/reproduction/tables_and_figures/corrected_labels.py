"""Figure of training images with their noisy, true and corrected labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.tables_and_figures.first_step_images import (
    Captioned,
    Chosen,
    FirstStepImages,
)
from chainer_jo.reproduction.tables_and_figures.output import Results, grid
from chainer_jo.reproduction.tables_and_figures.plot import COLOURS

SHAPE = 4, 5
#: Seed of the random draw.
SEED = 0
#: Mark and colour of a corrected label, by whether it is the true one.
MARKS = {True: ("✓", COLOURS[2]), False: ("✗", COLOURS[1])}


@dataclass(frozen=True)
class CorrectedLabelsFigure(FirstStepImages):
    """Twenty images of full size, drawn at random from those whose label was wrong before or after
    the first step: its failures are shown as often as they occur. The paper has no such figure;
    ``number`` is its place in lists. The true labels of the data are known."""

    number: int
    first_step: Experiment
    load: Callable[[], LabelledData]

    name = "corrected_labels"
    title = "Corrected labels"
    shape, size = SHAPE, (7.8, 8.2)
    columns = "preset", "data", "precision", "row", "noisy", "true", "corrected", "probability"
    caption = (
        f"{SHAPE[0] * SHAPE[1]} training images: noisy label → label after the first step, and "
        f"the true label. Drawn at random (NumPy, seed {SEED}) from all images whose label was "
        "wrong before or after the first step."
    )

    def paragraphs(self, results: Results) -> list[str]:
        """The labels of the images drawn, by their row in ``labels.npz``."""
        rows = [
            [*map(str, list(row.values())[:-1]), f"{row['probability']:.3f}"]
            for row in self.chosen(results).rows
        ]
        return [self.footnote(results), grid(self.columns[3:], rows)]

    def footnote(self, results: Results) -> str:
        noise = self.first_step.noise
        return f"{results}; {noise.kind} noise r = {noise.rate:g}; {self.chosen(results).summary}."

    def heading(self, results: Results) -> str:
        return "Noisy label → label after the first step"

    def captioned(self, image: Any, row: dict, results: Results) -> Captioned:
        mark, colour = MARKS[row["corrected"] == row["true"]]
        caption = f"{row['noisy']} → {row['corrected']} {mark}\n(true: {row['true']})"
        return Captioned(image, caption, colour)

    def choose(self, data: LabelledData, labels: np.ndarray) -> Chosen:
        full_size = replace(self.first_step, data=replace(self.first_step.data, shrink=None))
        train, names = full_size.split(data).train, data.class_names
        noisy, true, corrected = train.labels, train.true_labels, labels.argmax(axis=1)
        wrong = noisy != true, corrected != true
        before, after = (int(each.sum()) for each in wrong)
        either = np.flatnonzero(wrong[0] | wrong[1])
        number = min(SHAPE[0] * SHAPE[1], len(either))
        drawn = np.sort(np.random.default_rng(SEED).choice(either, number, replace=False))
        rows = [
            {
                "row": int(i),
                "noisy": names[noisy[i]],
                "true": names[true[i]],
                "corrected": names[corrected[i]],
                "probability": float(labels[i].max()),
            }
            for i in drawn
        ]
        right = sum(row["corrected"] == row["true"] for row in rows)
        numbers = {
            "description": f"{right} of {number} labels are right after the first step.",
            "training_images": len(train),
            "wrong_before": before,
            "wrong_after": after,
            "wrong_before_or_after": len(either),
        }
        summary = (
            f"{len(either) - after:,} of {before:,} wrong labels corrected, "
            f"{len(either) - before:,} of {len(train) - before:,} right labels spoilt; {number} "
            f"images drawn at random from the {len(either):,} with a wrong label before or after "
            "the first step"
        )
        return Chosen(train.images[drawn], rows, numbers, summary)
