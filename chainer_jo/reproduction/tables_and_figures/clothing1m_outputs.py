"""Table 3, Figures 7 and 8."""

from __future__ import annotations

from collections.abc import Callable

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
    trials = study.comparison_trials()
    baselines = [study.baseline("cross_entropy", *REAL, trial) for trial in trials]
    joint = [study.joint(*REAL, trial) for trial in trials]
    experiments = {
        ("cross_entropy", QUOTED): [],
        ("forward", QUOTED): [],
        **{("cross_entropy", which): baselines for which in ("best", "last")},
        **{("joint", which): joint for which in ("best", "last")},
    }
    numbers = iter((1, 2, 3, 3, 4, 4))
    rows = []
    for (method, which), runs in experiments.items():
        keys = {"method": method, "score": which}
        column, paper = {"accuracy": "test"}, (TABLE3.value(**keys), TABLE3.is_bold(**keys))
        cell = Cell(keys, column, runs, score(which, "test"), *paper, digits=2, competes=bool(runs))
        rows.append((f"#{next(numbers)} {METHODS[method]}, {which}", [cell]))
    block = Block(["accuracy"], rows, best="column")
    caption = f"{TABLE3.caption}; {data_set(study.data)}."
    return Table(TABLE3.number, caption, [block], NOTE)


def relabelled_figure(
    number: int, before: str, after: str
) -> Callable[[Clothing1MStudy], LabelChangesFigure]:
    """The figure for the paper's pair of classes, or for the one given with ``--classes``."""

    def build(study: Clothing1MStudy) -> LabelChangesFigure:
        names = study.load().class_names
        moved, to = (names[class_index(name, names)] for name in study.classes or (before, after))
        return LabelChangesFigure(number, moved, to, study.first_step(*REAL, 0), study.load)

    return build


figure7 = relabelled_figure(7, "Hoodie", "T-shirt")
figure8 = relabelled_figure(8, "T-shirt", "Hoodie")
