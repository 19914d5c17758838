"""Another rule for new labels: probabilities sharpened, beside soft and hard ones."""

import quick  # noqa: F401

from chainer_jo.method.soft_labels import RULES
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.cell import Cell, score
from chainer_jo.reproduction.tables_and_figures.table import Block, Table


def sharpened(labels, mean):
    """y is proportional to (mean s)^2: surer than soft labels, less so than hard ones."""
    squared = mean**2
    labels.soft_labels[...] = squared / squared.sum(axis=1, keepdims=True)


RULES["sharpened"] = sharpened


def table(study):
    rows = []
    for rule in ("soft", "sharpened", "hard"):
        runs = [study.joint("symmetric", 0.5, t, rule=rule) for t in study.comparison_trials()]
        cells = [
            Cell({"rule": rule}, {"accuracy": accuracy}, runs, score("last", accuracy))
            for accuracy in ("test", "recovery")
        ]
        rows.append((rule, cells))
    blocks = [Block(["test (%)", "labels (%)"], rows)]
    return Table(number=14, caption="Rules for new labels, symmetric noise r = 0.5.", blocks=blocks)


if __name__ == "__main__":
    main(table, __doc__)
