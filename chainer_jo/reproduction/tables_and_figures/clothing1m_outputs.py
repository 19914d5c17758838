"""Table 3, Figures 7 and 8."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from chainer_jo.data.labelled_data import class_index
from chainer_jo.reproduction.experiments.clothing1m_presets import Clothing1MStudy
from chainer_jo.reproduction.experiments.presets import REAL, Study
from chainer_jo.reproduction.experiments.words import data_set
from chainer_jo.reproduction.paper.tables import METHODS, TABLE3
from chainer_jo.reproduction.tables_and_figures.cell import Cell, score
from chainer_jo.reproduction.tables_and_figures.label_changes import LabelChangesFigure
from chainer_jo.reproduction.tables_and_figures.table import Block, Table

QUOTED = "quoted"
NOTE = (
    "#1 and #2 are quoted by the paper for Clothing1M and not computed here. Best: first epoch "
    "with the highest accuracy on the validation images, which have clean labels."
)


def table3(study: Study) -> Table:
    """Test accuracy of the quoted methods, of cross entropy and of the joint method."""
    trials, rows = study.comparison_trials(), []
    computed = {
        "cross_entropy": [study.baseline("cross_entropy", *REAL, trial) for trial in trials],
        "joint": [study.joint(*REAL, trial) for trial in trials],
    }
    numbers = iter((1, 2, 3, 3, 4, 4))
    for (method, which), paper in TABLE3.cells.items():
        runs = [] if which == QUOTED else computed[method]
        row, column = {"method": method, "score": which}, {"accuracy": "test"}
        printed = paper, (method, which) in TABLE3.bold
        cell = Cell(row, column, runs, score(which, "test"), *printed, 2, competes=bool(runs))
        rows.append((f"#{next(numbers)} {METHODS[method]}, {which}", [cell]))
    block = Block(["accuracy"], rows, best="column")
    caption = f"{TABLE3.caption}; {data_set(study.data)}."
    return Table(TABLE3.number, caption, [block], NOTE)


def _figure(study: Clothing1MStudy, number: int, classes: Sequence[str]) -> LabelChangesFigure:
    """The figure for the paper's pair of classes, or for the one given with ``--classes``."""
    names = study.load().class_names
    before, after = (names[class_index(name, names)] for name in study.classes or classes)
    return LabelChangesFigure(number, before, after, study.first_step(*REAL, 0), study.load)


figure7 = partial(_figure, number=7, classes=("Hoodie", "T-shirt"))
figure8 = partial(_figure, number=8, classes=("T-shirt", "Hoodie"))
