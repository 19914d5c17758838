"""Another noise: every class is mistaken for the next one."""

import quick  # noqa: F401

from chainer_jo.method import noise
from chainer_jo.method.label_sources import SOURCES, Drawn
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.cell import Cell, score
from chainer_jo.reproduction.tables_and_figures.table import Block, Table

RATE = 0.3


def next_class(names):
    return {k: (k + 1) % len(names) for k in range(len(names))}


def draw(labels, rate, names, rng):
    """Labels (n,) of which a fraction `rate` of every class is the next one's."""
    return noise.asymmetric(labels, rate, next_class(names), rng)


def matrix(rate, names):
    """T (c, c), which forward correction is told."""
    return noise.transition_matrix(rate, len(names), next_class(names))


SOURCES["next"] = Drawn("nx", draw, matrix)


def table(study):
    trials = study.comparison_trials()
    methods = {
        "cross entropy": [study.baseline("cross_entropy", "next", RATE, t) for t in trials],
        "forward": [study.baseline("forward", "next", RATE, t) for t in trials],
        # The paper has no alpha, beta and learning rate for this noise: they have to be given.
        "joint": [
            study.joint("next", RATE, t, alpha=0.8, beta=0.4, learning_rate=0.1) for t in trials
        ],
    }
    rows = [
        (name, [Cell({"method": name}, {"accuracy": "test"}, runs, score("last", "test"))])
        for name, runs in methods.items()
    ]
    caption = f"The methods where every class is mistaken for the next, r = {RATE}."
    return Table(number=15, caption=caption, blocks=[Block(["test (%)"], rows)])


if __name__ == "__main__":
    main(table, __doc__)
