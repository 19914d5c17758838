"""Figure 1: the loop of training and relabelling, drawn by hand.

figure1.svg is the editable drawing; figure1.png (200 dpi) and figure1.pdf are exports of it.
"""

from pathlib import Path

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.tables_and_figures.output import Results, TableOrFigure

CAPTION = (
    "The loop of the method: the network's output probabilities, averaged over past epochs, become "
    "the labels, and the network trains on these labels. Both are updated in turn, epoch by epoch."
)
DESCRIPTION = (
    "A CNN maps images to class probabilities. The probabilities of past epochs are averaged and "
    "become the labels. Labels, initially the noisy labels, and network parameters are updated in "
    "turn, each with the other fixed."
)


class Figure1(TableOrFigure):
    """Needs no run."""

    kind, number, caption = "figure", 1, CAPTION

    def paragraphs(self, results: Results) -> list[str]:
        return []

    def data(self, results: Results) -> dict:
        return {
            "figure": 1,
            "complete": True,
            "caption": CAPTION,
            "description": DESCRIPTION,
            "curves": [],
        }

    def extra_files(self, results: Results) -> dict[str, bytes]:
        drawn = (Path(__file__).with_suffix(ending) for ending in (".png", ".pdf"))
        return {path.suffix: path.read_bytes() for path in drawn}


def figure(study: Study) -> Figure1:
    return Figure1()


if __name__ == "__main__":
    main(figure, __doc__)
