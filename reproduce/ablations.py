"""Ablations of the first step (Sections 4.2 and 5.2): label accuracy without averaging, L_p or L_e.

The paper states the effects without numbers, so this table has no counterpart there.
"""

from statistics import fmean

from chainer_jo.reproduction.claims.comparisons import NOISES
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell, Quantity
from chainer_jo.reproduction.tables_and_figures.table import Block, Table
from chainer_jo.reproduction.tables_and_figures.table_layouts import confidence

#: Changed settings and row label of each ablation.
ABLATIONS = {
    "nothing": ({}, "full method"),
    "averaging": ({"average": 1}, "without averaging (labels of the last epoch)"),
    "prior": ({"alpha": 0.0}, "without L_p (alpha = 0)"),
    "entropy": ({"beta": 0.0}, "without L_e (beta = 0)"),
    "both terms": ({"alpha": 0.0, "beta": 0.0}, "without L_p and L_e (alpha = beta = 0)"),
}
HEADERS = {
    "first": "after the first update",
    "last": "at the end",
    "except_best_class": "except the best class",
    "above_0.99": "probability of at least 0.99",
}
CAPTION = "Ablations of the first step: label accuracy (%)"
NOTE = (
    "Except the best class: label accuracy at the end over all classes except the most accurate "
    "one. Probability of at least 0.99: share of the labels with such a maximum at the end."
)


class Ablations(Table):
    """The table after the paper's in lists of outputs."""

    name = "ablations"
    title = "Ablations of the first step"


def right(which: str) -> Quantity:
    """Label accuracy (percent) of one column, or the share of labels of at least 0.99."""
    if which == "above_0.99":
        return confidence("share", "1-0.99")

    def read(store: RunStore, run: Experiment) -> float:
        if which == "first":
            return 100 * store.log(run)[run.relabelling.start - 1]["recovery"]
        last = store.result(run)["last"]
        if which == "last":
            return 100 * last["recovery"]
        worse = sorted(last["recovery_by_class"])[:-1]
        return 100 * fmean(worse)

    return read


def table(study: Study) -> Table:
    rows = []
    for noise, rate in NOISES.items():
        for removed, (changed, label) in ABLATIONS.items():
            runs = [
                study.first_step(noise, rate, trial, **changed)
                for trial in study.sensitivity_trials()
            ]
            keys = {"noise": noise, "removed": removed}
            cells = [Cell(keys, {"quantity": which}, runs, right(which)) for which in HEADERS]
            rows.append((f"{noise}, r = {rate:g}: {label}", cells))
    return Ablations(
        14, f"{CAPTION}; {trained_on(study)}.", [Block(list(HEADERS.values()), rows)], NOTE
    )


if __name__ == "__main__":
    main(table, __doc__)
