"""The layout that Tables 12 and 13 share: label accuracy by the labels' highest probability."""

from chainer_jo.paper.printed import PrintedTable
from chainer_jo.paper.tables import probability_range
from chainer_jo.report.table import Block, Cell, Quantity, Table, result
from chainer_jo.report.words import of_the_paper, trained_on
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.presets import Study
from chainer_jo.runs.store import RunStore


def confidence(quantity: str, probabilities: str) -> Quantity:
    """The quantity ``accuracy`` (percent), ``number`` or ``share`` (percent of all labels) of those
    in a range like ``1-0.99``.

    A range without labels has no accuracy: None.
    """
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
                printed.value(quantity=quantity, range=name), digits=int(quantity != "number"),
            )
            for name in ranges
        ]  # fmt: skip
        rows.append((label, cells))
    note = "A dash stands for the accuracy of a range that no label is in."
    caption = f"{printed.caption}; {trained_on(study)}."
    return Table(printed.number, caption, [Block(ranges, rows)], note)
