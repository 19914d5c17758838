"""Figures of training images with the labels that a first step gave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure as Canvas

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.output import Setting, TableOrFigure
from chainer_jo.reproduction.tables_and_figures.plot import INK, RC, note_under, png_and_pdf

#: The message for a finished first step without final labels.
LOST = "unchanged, because the final labels of the first step are not in this folder"


class FirstStepImages(TableOrFigure):
    """A figure of images, chosen by the final labels of a first step."""

    first_step: Experiment

    kind = "figure"

    @property
    def experiments(self) -> Sequence[Experiment]:
        return [self.first_step]

    def write(self, store: RunStore, setting: Setting, folder: Path, figures: Path) -> list[Path]:
        """Writes all files, as for any figure; files stay as they are if the first step's last
        labels are missing."""
        lost = store.lost_labels(self.first_step)
        return [] if lost else super().write(store, setting, folder, figures)

    def text(self, store: RunStore, setting: Setting) -> str:
        """The page as Markdown, for the terminal too."""
        if store.lost_labels(self.first_step):
            return f"{self.title}: {LOST}."
        return super().text(store, setting)


class Captioned(NamedTuple):
    """An image, as matplotlib's ``imshow`` takes it, and the text under it."""

    image: Any
    caption: str
    colour: str = INK


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
        return png_and_pdf(canvas)
