"""The layout that Tables 1 and 2 share: methods and scores down, accuracies and noise rates
across."""

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import METHODS
from chainer_jo.paper.table import Table as PaperTable
from chainer_jo.report.cells import Cell, score
from chainer_jo.report.table import Block, Table

ACCURACIES = {"test": "Test", "recovery": "Recovery"}


def comparison_table(study: Study, printed: PaperTable, noise: str) -> Table:
    """The table ``printed`` for one kind of noise."""
    rates = study.noise_rates or printed.keys("noise_rate")
    rows = []
    for method in printed.keys("method"):
        runs = {
            rate: [
                comparison_run(study, method, noise, rate, trial)
                for trial in study.comparison_trials()
            ]
            for rate in rates
        }
        for which in printed.keys("score"):
            cells = []
            for accuracy in ACCURACIES:
                for rate in rates:
                    keys = {
                        "method": method,
                        "score": which,
                        "accuracy": accuracy,
                        "noise_rate": rate,
                    }
                    cells.append(
                        Cell(
                            {"method": method, "score": which},
                            {"accuracy": accuracy, "noise_rate": rate},
                            runs[rate],
                            score(which, accuracy),
                            printed.value(**keys),
                            printed.is_bold(**keys),
                        )
                    )
            rows.append((f"{METHODS[method]}, {which}", cells))
    headers = [f"{100 * rate:g} %" for _ in ACCURACIES for rate in rates]
    groups = [(name, len(rates)) for name in ACCURACIES.values()]
    return Table(printed.number, printed.caption, [Block(headers, rows, groups=groups)])


def comparison_run(study: Study, method: str, noise: str, rate: float, trial: int) -> Experiment:
    """One trial of a method: the second step of ours, or a baseline."""
    if method == "joint":
        return study.joint(noise, rate, trial)
    return study.baseline(method, noise, rate, trial)
