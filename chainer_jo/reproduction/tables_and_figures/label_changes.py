"""Labels changed by the first step, and Figures 7 and 8 with examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo.data.clothing1m_standin import glyph
from chainer_jo.data.decoding import open_rgb
from chainer_jo.data.labelled_data import LabelledData, class_index
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_STANDIN
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.starting_labels import check_results
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.first_step_images import (
    Captioned,
    FirstStepImages,
    draw_images,
)
from chainer_jo.reproduction.tables_and_figures.grid import Grid
from chainer_jo.reproduction.tables_and_figures.output import Page, Setting, as_csv

#: Images that a figure shows from either end.
IMAGES_PER_END = 2
#: Names of the ends.
SURE = {"top": "highest", "bottom": "lowest"}


@dataclass(frozen=True)
class LabelChanges:
    """The training images with their labels before and after the first step.

    Parameters
    ----------
    images : paths, strings (n,).
    before, after : (n,) int, classes before, and by the arg max of the labels after.
    probability : (n,), of the class after.
    """

    class_names: tuple[str, ...]
    images: np.ndarray
    before: np.ndarray
    after: np.ndarray
    probability: np.ndarray

    @staticmethod
    def by(
        store: RunStore, first_step: Experiment, load: Callable[[], LabelledData]
    ) -> LabelChanges | None:
        """The changes of a first step; None if it has not finished or its labels are missing.
        UserError if it ran on other data."""
        labels = store.soft_labels(first_step)
        if labels is None or store.result(first_step) is None:
            return None
        data = load()
        check_results([first_step], store, data)
        before = data.train.labels
        after, probability = labels.argmax(axis=1), labels.max(axis=1)
        return LabelChanges(data.class_names, data.train.images, before, after, probability)

    def pair(self, before: int, after: int) -> np.ndarray:
        """Indices of the images relabelled from one class to another, by decreasing probability."""
        moved = np.flatnonzero((self.before == before) & (self.after == after))
        return moved[np.argsort(-self.probability[moved], kind="stable")]


def drawn_for(names: Sequence[str], setting: Setting) -> str:
    """The stand-in's drawings of these classes, as a sentence; empty for other data."""
    if setting.data != CLOTHING1M_STANDIN:
        return ""
    drawn = (f"a {name} is {glyph(name)}" for name in names)
    return f" The stand-in draws no clothes: {', '.join(drawn)}."


@dataclass(frozen=True)
class LabelChangesFigure(FirstStepImages):
    """Figures 7 and 8: images with the top-2 and bottom-2 probabilities of the class they moved to.

    Parameters
    ----------
    before, after : names of the classes.
    load : gives the data set.
    """

    number: int
    before: str
    after: str
    first_step: Experiment
    load: Callable[[], LabelledData]

    @property
    def caption(self) -> str:
        return (
            f"Images relabelled from {self.before} to {self.after} by the first step: the two with "
            f"the highest and the two with the lowest probability of {self.after}."
        )

    def page(self, store: RunStore, setting: Setting) -> Page:
        """The images shown and their probabilities."""
        rows, total = self._rows(store)
        shown = [(row["end"], [row["key"], f"{row['probability']:.3f}"]) for row in rows]
        paper = (
            f"The paper's {self.title} shows such images of Clothing1M. By inspection, Section 5.8 "
            "finds labels of high probability correct and labels of low probability wrong."
        )
        notes = [self._footnote(setting, total), paper]
        return Page(self.title, self.caption, notes, [Grid(["image", "probability"], shown)])

    def data(self, store: RunStore, setting: Setting) -> dict:
        """The images shown, and the number of images moved from one class to the other."""
        rows, total = self._rows(store)
        return {
            **self.head(setting, total is not None),
            "moved": total,
            "images": rows,
        }

    def extra_files(self, store: RunStore, setting: Setting) -> dict[str, str | bytes]:
        """The drawing, and the images shown as CSV."""
        rows, total = self._rows(store)
        table = [["preset", "data", "end", "key", "before", "after", "probability"]]
        table += [[setting.preset, setting.data, *row.values()] for row in rows]
        before, after, note = self.before, self.after, ""
        if setting.data == CLOTHING1M_STANDIN:
            before, after = (glyph(name).removeprefix("the ") for name in (before, after))
            note = " (stand-in)"
        heading = f"{self.title}: {before} → {after}{note}"
        images = [
            Captioned(
                open_rgb(Path(self.load().root, row["key"])),
                f"{SURE[row['end']]}\n{after}:\n{100 * row['probability']:.1f} %",
            )
            for row in rows
        ]
        shape, footnote = (1, 2 * IMAGES_PER_END), self._footnote(setting, total)
        drawing = draw_images(images, shape, (5.2, 2.6), heading, footnote)
        return {**drawing, ".csv": as_csv(table)}

    def _rows(self, store: RunStore) -> tuple[list[dict], int | None]:
        """The images shown, from left to right, and the number moved; None before the run."""
        changes = LabelChanges.by(store, self.first_step, self.load)
        if changes is None:
            return [], None
        names, images = changes.class_names, changes.images
        moved = changes.pair(class_index(self.before, names), class_index(self.after, names))
        top = moved[:IMAGES_PER_END]
        bottom = moved[max(IMAGES_PER_END, len(moved) - IMAGES_PER_END) :]
        return [
            {
                "end": end,
                "key": images[i],
                "before": self.before,
                "after": self.after,
                "probability": float(changes.probability[i]),
            }
            for end, chosen in (("top", top), ("bottom", bottom))
            for i in chosen
        ], len(moved)

    def _footnote(self, setting: Setting, total: int | None) -> str:
        moved = f"{total} images were relabelled {self.before} → {self.after}"
        progress = "not finished yet" if total is None else moved
        key = drawn_for((self.before, self.after), setting)
        return f"Preset {setting.preset}, data {setting.data}; {progress}.{key}"
