"""Layouts of the paper's tables of results: methods (Tables 1 and 2), parameters (Tables 6 to 11),
label accuracy by probability (Tables 12 and 13)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from chainer_jo.reproduction.claims.statements import CROSS_ENTROPY_DROPS
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import of_the_paper, trained_on
from chainer_jo.reproduction.paper.printed import PrintedTable, SensitivityTable
from chainer_jo.reproduction.paper.tables import METHODS, probability_range
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import (
    Cell,
    Quantity,
    noisy_labels_right,
    result,
    score,
)
from chainer_jo.reproduction.tables_and_figures.table import Block, Table

#: The noise rate of Table 1 that stands for all.
NOISE_RATE = 0.5
ACCURACIES = {"test": "Test", "recovery": "Labels"}

NOTE = (
    "Best: first epoch with the highest accuracy on the validation images, which have true labels. "
    "Last: last epoch. Labels: label accuracy, on the training images. The joint method is scored "
    "by the labels of its first step, at the best and last epoch of the first step; the other "
    "methods are scored by their predictions."
)


def comparison_table(study: Study, printed: PrintedTable, noise: str) -> Table:
    """The table ``printed`` for one kind of noise, with the accuracy of the noisy labels on top."""
    rates = study.noise_rates or printed.keys("noise_rate")
    runs = {
        (method, rate): [_run(study, method, noise, rate, t) for t in study.comparison_trials()]
        for method in printed.keys("method")
        for rate in rates
    }
    before = [
        Cell(
            {"method": "noisy_labels", "score": "initial"},
            {"accuracy": "recovery", "noise_rate": rate},
            runs["cross_entropy", rate],  # whose labels are the noisy labels
            noisy_labels_right,
            competes=False,
        )
        for rate in rates
    ]
    rows: list[tuple[str, Sequence[Cell | None]]] = [
        ("Noisy labels", [*(None for _ in rates), *before])
    ]
    for method in printed.keys("method"):
        for which in printed.keys("score"):
            row, cells = {"method": method, "score": which}, []
            for accuracy, rate in itertools.product(ACCURACIES, rates):
                column = {"accuracy": accuracy, "noise_rate": rate}
                key = method, which, accuracy, rate
                paper = printed.cells.get(key), key in printed.bold
                cells.append(Cell(row, column, runs[method, rate], score(which, accuracy), *paper))
            rows.append((f"{METHODS[method]}, {which}", cells))
    headers = [f"{name} {100 * rate:g} %" for name in ACCURACIES.values() for rate in rates]
    caption = f"{printed.caption}; {trained_on(study)}."
    block = Block(headers, rows, best="column")
    return Table(printed.number, caption, [block], f"{NOTE} {_premise(study)}".strip())


def _premise(study: Study) -> str:
    """Note that the preset was chosen by the numbers of cross entropy; empty for other presets."""
    if CROSS_ENTROPY_DROPS not in study.sized_for:
        return ""
    return (
        f"We chose the preset {study.preset.name} because cross entropy overfits there (judged on "
        "trial 0 at r = 0.5 of symmetric noise), so that overfitting is an assumption, not a "
        "result."
    )


def _run(study: Study, method: str, noise: str, rate: float, trial: int) -> Experiment:
    """The run of a method: the second step of ours, or a baseline."""
    if method == "joint":
        return study.joint(noise, rate, trial)
    return study.baseline(method, noise, rate, trial)


def confidence(quantity: str, probabilities: str) -> Quantity:
    """The quantity ``accuracy`` (percent), ``number`` or ``share`` (percent of all labels) of those
    in a range like ``1-0.99``. A range without labels has no accuracy: None."""
    upper, lower = probability_range(probabilities)

    def read(store: RunStore, experiment: Experiment) -> float | None:
        every = result(store, experiment)["confidence"]
        rows = [row for row in every if lower <= row["from"] < upper]
        number = sum(row["number"] for row in rows)
        if quantity == "number":
            return number
        if quantity == "share":
            return 100 * number / sum(row["number"] for row in every)
        return 100 * sum(row["right"] for row in rows) / number if number else None

    return read


def confidence_table(study: Study, printed: PrintedTable, noise: str, rate: float) -> Table:
    """The table ``printed``, of the first step on this noise; for other images than the paper's
    with the share of labels in place of their number."""
    runs = [study.first_step(noise, rate, trial) for trial in study.sensitivity_trials()]
    ranges = printed.keys("range")
    rows = []
    counted = ("number", "number") if of_the_paper(study.data) else ("share", "share (%)")
    for quantity, label in (("accuracy", "acc (%)"), counted):
        cells = [
            Cell(
                {"quantity": quantity}, {"range": name}, runs, confidence(quantity, name),
                printed.cells.get((quantity, name)), digits=int(quantity != "number"),
            )
            for name in ranges
        ]  # fmt: skip
        rows.append((label, cells))
    note = "A dash marks a range without labels."
    caption = f"{printed.caption}; {trained_on(study)}."
    return Table(printed.number, caption, [Block(ranges, rows)], note)


NAMES = {
    "alpha": "α", "beta": "β", "learning_rate": "learning rate", "start_epoch": "start epoch",
    "stop_epoch": "stop epoch",
}  # fmt: skip


#: Validation accuracy at the end of the whole method: of the second step's last epoch.
validation = score("last", "validation")


def sensitivity_table(study: Study, printed: SensitivityTable) -> Table:
    """The table ``printed``; the columns are the paper's values, epochs before any scaling, with
    the value that the paper chose in bold."""
    blocks = []
    for parameter in printed.chosen:
        values = printed.keys("value", parameter=parameter)
        cells = []
        for value in values:
            chosen = {**printed.others(parameter), parameter: value}
            runs = [
                study.joint(printed.noise, printed.noise_rate, trial, **chosen)
                for trial in study.sensitivity_trials()
            ]
            paper = printed.cells.get((parameter, value))
            cells.append(Cell({"parameter": parameter}, {"value": value}, runs, validation, paper))
        others = ", ".join(f"{NAMES[k]} = {v:g}" for k, v in printed.others(parameter).items())
        blocks.append(
            Block(
                [f"**{v:g}**" if v == printed.chosen[parameter] else f"{v:g}" for v in values],
                [("val (%)", cells)],
                f"{NAMES[parameter]} varies, {others}",
                best="row",
            )
        )
    note = (
        "Bold in the header: the value chosen by the paper. Validation accuracy: last epoch of the "
        "second step, on images with true labels."
    )
    scale = study.preset.time_scale
    if "start_epoch" in printed.chosen and scale != 1:
        note += f" Epochs are the paper's; the schedules here are {scale:g} times as long."
    return Table(printed.number, f"{printed.caption}; {trained_on(study)}.", blocks, note)
