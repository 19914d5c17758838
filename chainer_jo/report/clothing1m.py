"""Table 3, Figures 7 and 8, and the page of relabelled images."""

from __future__ import annotations

from chainer_jo.commands.clothing1m_app import Build, Context
from chainer_jo.datasets.clothing1m import class_index
from chainer_jo.paper import METHODS, TABLE3
from chainer_jo.report.cells import Cell, score
from chainer_jo.report.relabelled import RelabelledFigure
from chainer_jo.report.relabelled_page import RelabelledPage
from chainer_jo.report.table import Block, Table

QUOTED = "quoted"
NOTE = "#1 and #2 are quoted as the paper quotes them, [so], and not computed here; #3 and #4 are."


def table3(context: Context) -> Table:
    """Test accuracy of the quoted methods, of cross entropy and of the joint method."""
    study = context.study
    experiments = {
        ("cross_entropy", QUOTED): [],
        ("forward", QUOTED): [],
        **{("cross_entropy", which): [study.baseline()] for which in ("best", "last")},
        **{("joint", which): [study.joint()] for which in ("best", "last")},
    }
    numbers = iter((1, 2, 3, 3, 4, 4))
    rows = []
    for (method, which), runs in experiments.items():
        keys = {"method": method, "score": which}
        cell = Cell(
            keys,
            {"accuracy": "test"},
            runs,
            score(which, "test"),
            TABLE3.value(**keys),
            TABLE3.is_bold(**keys),
            digits=2,
        )
        rows.append((f"#{next(numbers)} {METHODS[method]}, {which}", [cell]))
    return Table(TABLE3.number, TABLE3.caption, [Block(["accuracy"], rows)], NOTE)


def relabelled_figure(number: int, before: str, after: str) -> Build:
    """The figure for the paper's pair of classes, or for the one given with ``--classes``."""

    def build(context: Context) -> RelabelledFigure:
        names = context.data.class_names
        pair = [names[class_index(name, names)] for name in context.classes or (before, after)]
        return RelabelledFigure(number, *pair, context.study.first_step(), context.data)

    return build


figure7 = relabelled_figure(7, "Hoodie", "T-shirt")
figure8 = relabelled_figure(8, "T-shirt", "Hoodie")


def page(context: Context) -> RelabelledPage:
    """relabelled.html."""
    return RelabelledPage(context.study.first_step(), context.data)
