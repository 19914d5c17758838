"""Figures 7 and 8: images whose label the first step changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo.data.clothing1m_standin import glyph
from chainer_jo.data.decoding import open_rgb
from chainer_jo.data.labelled_data import LabelledData, class_index
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_STANDIN
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.tables_and_figures.first_step_images import (
    Captioned,
    Chosen,
    FirstStepImages,
)
from chainer_jo.reproduction.tables_and_figures.output import Results, grid

#: Images that a figure shows from either end.
IMAGES_PER_END = 2
#: Names of the ends.
SURE = {"top": "highest", "bottom": "lowest"}


@dataclass(frozen=True)
class LabelChangesFigure(FirstStepImages):
    """Images with the top-2 and bottom-2 probabilities of the class ``after``, to which they moved
    from ``before`` (names of classes). The data set's images are files."""

    number: int
    before: str
    after: str
    first_step: Experiment
    load: Callable[[], LabelledData]

    shape, size = (1, 2 * IMAGES_PER_END), (5.2, 2.6)
    columns = "preset", "data", "end", "key", "before", "after", "probability"

    @property
    def caption(self) -> str:
        return (
            f"Images relabelled from {self.before} to {self.after} by the first step: the two with "
            f"the highest and the two with the lowest probability of {self.after}."
        )

    def paragraphs(self, results: Results) -> list[str]:
        """The images shown and their probabilities."""
        rows = [
            [row["end"], row["key"], f"{row['probability']:.3f}"]
            for row in self.chosen(results).rows
        ]
        paper = (
            f"The paper's {self.title} shows such images of Clothing1M. By inspection, Section 5.8 "
            "finds labels of high probability correct and labels of low probability wrong."
        )
        return [self.footnote(results), paper, grid(["", "image", "probability"], rows)]

    def footnote(self, results: Results) -> str:
        note = f"Preset {results.preset}, data {results.data}; {self.chosen(results).summary}."
        if results.data != CLOTHING1M_STANDIN:
            return note
        drawn = (f"a {name} is {glyph(name)}" for name in (self.before, self.after))
        return f"{note} The stand-in draws no clothes: {', '.join(drawn)}."

    def heading(self, results: Results) -> str:
        note = " (stand-in)" if results.data == CLOTHING1M_STANDIN else ""
        before, after = (_in_pictures(name, results) for name in (self.before, self.after))
        return f"{self.title}: {before} → {after}{note}"

    def captioned(self, image: Any, row: dict, results: Results) -> Captioned:
        after, probability = _in_pictures(self.after, results), 100 * row["probability"]
        return Captioned(image, f"{SURE[row['end']]}\n{after}:\n{probability:.1f} %")

    def choose(self, data: LabelledData, labels: np.ndarray) -> Chosen:
        images, names = data.train.images, data.class_names
        before, after = (class_index(name, names) for name in (self.before, self.after))
        moved = np.flatnonzero((data.train.labels == before) & (labels.argmax(axis=1) == after))
        moved = moved[np.argsort(-labels[moved, after], kind="stable")]
        lowest = max(IMAGES_PER_END, len(moved) - IMAGES_PER_END)
        rows = [
            {
                "end": end,
                "key": images[i],
                "before": self.before,
                "after": self.after,
                "probability": float(labels[i, after]),
            }
            for end, chosen in (("top", moved[:IMAGES_PER_END]), ("bottom", moved[lowest:]))
            for i in chosen
        ]
        shown = [open_rgb(Path(data.root, row["key"])) for row in rows]
        summary = f"{len(moved)} images were relabelled {self.before} → {self.after}"
        return Chosen(shown, rows, {"moved": len(moved)}, summary)


def _in_pictures(name: str, results: Results) -> str:
    """A class's name or, in the stand-in, what is drawn for it."""
    return glyph(name).removeprefix("the ") if results.data == CLOTHING1M_STANDIN else name
