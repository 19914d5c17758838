"""The layout that Tables 1 and 2 share: methods and scores down, accuracies and noise rates
across."""

from collections.abc import Sequence

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import METHODS
from chainer_jo.paper.table import Table as PaperTable
from chainer_jo.report.cells import Cell, noisy_labels_right, score
from chainer_jo.report.table import Block, Table
from chainer_jo.report.words import images

NOISY_LABELS = "noisy_labels"
"""The row of what labels are before any method."""
ACCURACIES = {"test": "Test", "recovery": "Recovery"}


def comparison_table(study: Study, printed: PaperTable, noise: str) -> Table:
    """The table ``printed`` for one kind of noise, below a row of the labels it starts from."""
    rates = study.noise_rates or printed.keys("noise_rate")
    rows = [("Labels before any method", [*(None for _ in rates), *_noisy(study, noise, rates)])]
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
    caption = f"{printed.caption}; {images(study)}."
    return Table(printed.number, caption, [Block(headers, rows, groups=groups, best="column")])


def _noisy(study: Study, noise: str, rates: Sequence[float]) -> list[Cell]:
    """The share of right labels, per noise rate."""
    return [
        Cell(
            {"method": NOISY_LABELS, "score": "initial"},
            {"accuracy": "recovery", "noise_rate": rate},
            [
                comparison_run(study, NOISY_LABELS, noise, rate, t)
                for t in study.comparison_trials()
            ],
            noisy_labels_right,
            competes=False,
        )
        for rate in rates
    ]


def comparison_run(study: Study, method: str, noise: str, rate: float, trial: int) -> Experiment:
    """One trial of a method: the second step of ours, or a baseline; of the labels themselves, a
    run that was given them."""
    if method == NOISY_LABELS:
        method = "cross_entropy"
    if method == "joint":
        return study.joint(noise, rate, trial)
    return study.baseline(method, noise, rate, trial)
