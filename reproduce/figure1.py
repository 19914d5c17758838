"""Figure 1: the loop of training and relabelling, drawn by hand.

Its PNG, at 200 dots an inch, and its PDF lie beside this script; figure1.svg is the same drawing,
to be edited.
"""

from pathlib import Path

from chainer_jo.commands import main
from chainer_jo.report.output import Page, TableOrFigure
from chainer_jo.runs.presets import Study
from chainer_jo.runs.store import RunStore

CAPTION = (
    "The loop of the method: what the network says of an image, averaged over past epochs, becomes "
    "its label, and the network is trained on that; both in turn, epoch by epoch."
)
DESCRIPTION = (
    "Images go through a CNN, which gives the probabilities of their classes; the probabilities "
    "of the past epochs are averaged and become the labels. Labels, at first the noisy ones, and "
    "the network's parameters are updated in turn, each with the other fixed."
)


class Figure1(TableOrFigure):
    """Needs no run."""

    kind, number = "figure", 1

    def page(self, store: RunStore, origin: dict) -> Page:
        return Page(self.title, CAPTION)

    def data(self, store: RunStore, origin: dict) -> dict:
        return {
            "figure": 1,
            "complete": True,
            "caption": CAPTION,
            "description": DESCRIPTION,
            "curves": [],
        }

    def extra_files(self, store: RunStore, origin: dict) -> dict[str, bytes]:
        drawn = (Path(__file__).with_suffix(ending) for ending in (".png", ".pdf"))
        return {path.suffix: path.read_bytes() for path in drawn}


def figure(study: Study) -> Figure1:
    return Figure1()


if __name__ == "__main__":
    main(figure, __doc__)
