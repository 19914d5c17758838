"""Figures of training images with the labels that a first step gave them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Canvas

from chainer_jo.method.noisy_split import as_used
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.starting_labels import labels_of
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import plot
from chainer_jo.reproduction.tables_and_figures.output import Results, TableOrFigure, as_csv
from chainer_jo.reproduction.tables_and_figures.plot import INK, RC, note_under

#: The message for a finished first step without final labels.
LOST = "unchanged, because the final labels of the first step are not in this folder"


class Chosen(NamedTuple):
    """The images of a figure, their labels in words, row by row, numbers for the JSON file, and one
    clause about them all."""

    images: Any = ()
    rows: Sequence[dict] = ()
    numbers: Mapping[str, Any] = {}
    summary: str = "not finished yet"


class Captioned(NamedTuple):
    """An image, as matplotlib's ``imshow`` takes it, and the text under it."""

    image: Any
    caption: str
    colour: str = INK


class FirstStepImages(TableOrFigure):
    """A figure of images, chosen by the final labels of a first step on the data set that ``load``
    gives. ``shape`` is in rows and columns, ``size`` (width, height) in inches; ``columns`` of the
    CSV file are keys of `Results.names`, then in a row."""

    first_step: Experiment
    load: Callable[[], Any]
    shape: ClassVar[tuple[int, int]]
    size: ClassVar[tuple[float, float]]
    columns: ClassVar[Sequence[str]]

    kind = "figure"

    @property
    def experiments(self) -> Sequence[Experiment]:
        return [self.first_step]

    @abc.abstractmethod
    def choose(self, data: Any, labels: np.ndarray) -> Chosen:
        """The images to show, by the final labels (n, c) of the first step."""

    @abc.abstractmethod
    def captioned(self, image: Any, row: dict, results: Results) -> Captioned:
        """An image with its labels."""

    @abc.abstractmethod
    def heading(self, results: Results) -> str:
        """The drawing's title."""

    @abc.abstractmethod
    def footnote(self, results: Results) -> str:
        """The note under the caption and under the drawing."""

    def chosen(self, results: Results) -> Chosen:
        """Nothing before the run has finished; UserError if it ran on other data."""
        store = results.store
        result = store.result(self.first_step)
        if result is None or store.soft_labels(self.first_step) is None:
            return Chosen()
        return _chosen(self, store.root, result.get("sha256"))

    def data(self, results: Results) -> dict:
        """The labels of the images, and their numbers."""
        chosen = self.chosen(results)
        head = self.head(results, bool(chosen.numbers))
        return {**head, **chosen.numbers, "images": chosen.rows}

    def extra_files(self, results: Results) -> dict[str, str | bytes]:
        """The drawing, and the labels of the images as CSV."""
        chosen = self.chosen(results)
        pairs = zip(chosen.images, chosen.rows, strict=True)
        images = [self.captioned(image, row, results) for image, row in pairs]
        note = self.footnote(results)
        drawing = draw_images(images, self.shape, self.size, self.heading(results), note)
        lines = [{**results.names, **row} for row in chosen.rows]
        table = [self.columns, *([line[name] for name in self.columns] for line in lines)]
        return {**drawing, ".csv": as_csv(table)}

    def write(self, results: Results, folder: Path, figures: Path) -> list[Path]:
        """Writes all files, as for any figure; files stay as they are if the first step's last
        labels are missing."""
        lost = results.store.lost_labels(self.first_step)
        return [] if lost else super().write(results, folder, figures)

    def text(self, results: Results) -> str:
        """The page as Markdown, for the terminal too."""
        if results.store.lost_labels(self.first_step):
            return f"{self.title}: {LOST}."
        return super().text(results)


@lru_cache(maxsize=1)  # a figure asks several times, and images may take seconds to load
def _chosen(figure: FirstStepImages, root: Path, result: str | None) -> Chosen:
    """The images of a figure; ``result`` is the digest of the first step's result."""
    data = figure.load()
    trained_on = as_used(data, figure.first_step.data).fingerprint()
    return figure.choose(data, labels_of(figure.first_step, RunStore(root), trained_on))


def draw_images(
    images: Sequence[Captioned],
    shape: tuple[int, int],
    size: tuple[float, float],
    heading: str,
    footnote: str,
) -> dict[str, bytes]:
    """PNG and PDF of images in ``shape`` (rows, columns), row by row; ``size`` (width, height) is
    in inches. Places without an image stay empty."""
    with matplotlib.rc_context(RC):
        canvas = Canvas(size, layout="constrained")
        for place, axes in enumerate(canvas.subplots(*shape, squeeze=False).flat):
            axes.set(xticks=[], yticks=[], anchor="N")
            axes.spines[:].set_visible(False)
            if place < len(images):
                shown = images[place]
                axes.imshow(shown.image, cmap="gray", vmin=0, vmax=255)  # of grey images alone
                axes.set_xlabel(shown.caption, color=shown.colour)
        canvas.suptitle(heading, fontsize=10, color=INK)
        note_under(canvas, footnote)
        return plot.png_and_pdf(canvas)
