"""The layout that Tables 1 and 2 share: methods and scores down, accuracies and noise rates
across."""

from collections.abc import Iterable, Sequence

from chainer_jo.paper.claims.methods import MEMORISED
from chainer_jo.paper.printed import Key, PrintedTable
from chainer_jo.paper.tables import METHODS
from chainer_jo.report.table import Block, Cell, Table, noisy_labels_right, score
from chainer_jo.report.words import trained_on
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.presets import Study

ACCURACIES = {"test": "Test", "recovery": "Recovery"}

NOTE = (
    "Best: at the first epoch with the highest accuracy on the validation images, whose labels are "
    "true; last: at the last epoch. Recovery is of the training images: for the joint method the "
    "labels of its first step, at that step's own best epoch and at its last, for the others the "
    "classes that the network predicts."
)

Runs = dict[float, list[Experiment]]
"""By noise rate, one run per trial."""


def comparison_table(study: Study, printed: PrintedTable, noise: str) -> Table:
    """The table ``printed`` for one kind of noise, below a row of the labels it starts from."""
    rates = study.noise_rates or printed.keys("noise_rate")
    methods = printed.keys("method")
    runs = {method: _runs(study, method, noise, rates) for method in methods}
    given = runs["cross_entropy"]  # their labels are as they were before any method
    rows: list[tuple[str, Sequence[Cell | None]]] = [
        ("Labels before any method", [*(None for _ in rates), *_labels_before(given)])
    ]
    for method in methods:
        for which in printed.keys("score"):
            cells = _cells(printed, method, which, runs[method])
            rows.append((f"{METHODS[method]}, {which}", list(cells)))
    headers = [f"{100 * rate:g} %" for _ in ACCURACIES for rate in rates]
    groups = [(name, len(rates)) for name in ACCURACIES.values()]
    caption = f"{printed.caption}; {trained_on(study)}."
    block = Block(headers, rows, groups=groups, best="column")
    return Table(printed.number, caption, [block], f"{NOTE} {_premise(study)}".strip())


def _premise(study: Study) -> str:
    """The limit of cross entropy's numbers: the preset was chosen by them."""
    if not study.of_the_preset or MEMORISED not in study.preset.premises:
        return ""
    return (
        f"The preset {study.preset.name} was chosen because cross entropy memorises wrong labels "
        "in it, by the run that is trial 0 at r = 0.5 of symmetric noise: that it does is a "
        "premise of these numbers and no finding."
    )


def _runs(study: Study, method: str, noise: str, rates: Sequence[float]) -> Runs:
    """The runs of a method: the second step of ours, or a baseline."""
    trials = study.comparison_trials()
    if method == "joint":
        return {rate: [study.joint(noise, rate, trial) for trial in trials] for rate in rates}
    return {rate: [study.baseline(method, noise, rate, t) for t in trials] for rate in rates}


def _cells(printed: PrintedTable, method: str, which: str, runs: Runs) -> Iterable[Cell]:
    for accuracy in ACCURACIES:
        for rate, experiments in runs.items():
            row = {"method": method, "score": which}
            column: dict[str, Key] = {"accuracy": accuracy, "noise_rate": rate}
            paper, bold = printed.value(**row, **column), printed.is_bold(**row, **column)
            yield Cell(row, column, experiments, score(which, accuracy), paper, bold)


def _labels_before(runs: Runs) -> Iterable[Cell]:
    """The label accuracy per noise rate."""
    for rate, experiments in runs.items():
        row = {"method": "noisy_labels", "score": "initial"}
        column = {"accuracy": "recovery", "noise_rate": rate}
        yield Cell(row, column, experiments, noisy_labels_right, competes=False)
