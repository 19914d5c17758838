"""Tables 6 to 11: hyper parameters, and the epochs of the first and last label update."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import NOTABLE, POINTS, Finding, not_inferior
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.paper.printed import SensitivityTable
from chainer_jo.reproduction.trials import Trials

LOW_RATE, HIGH_RATE = 0.01, 0.1
"""Learning rates, below and above every chosen one, that Tables 8 and 9 have in common."""


def _value(results: Results, table: SensitivityTable, parameter: str, value: float) -> Trials:
    return results.trials(f"table{table.number}", parameter=parameter, value=value)


def _others_do_well(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    """The values at which the paper loses at most `NOTABLE` points versus the chosen value."""
    for parameter, chosen in table.chosen.items():
        at_chosen = _value(results, table, parameter, chosen)
        for value in table.keys("value", parameter=parameter):
            loss = table.cells[parameter, chosen] - table.cells[parameter, value]
            if value != chosen and loss <= NOTABLE:
                at_value = _value(results, table, parameter, value)
                yield not_inferior(f"{parameter} {value} versus {chosen}", at_value, at_chosen)


def _rate_rises_with_noise(results: Results) -> Iterator[Finding]:
    def gain(table: SensitivityTable) -> Trials:
        low, high = (_value(results, table, "learning_rate", lr) for lr in (LOW_RATE, HIGH_RATE))
        return high - low

    noisier, cleaner = tables.TABLE8, tables.TABLE9
    rates = f"r = {noisier.noise_rate} versus {cleaner.noise_rate}"
    compared = f"gain from lr {LOW_RATE} to {HIGH_RATE}, {rates}"
    yield Finding(compared, gain(noisier), gain(cleaner), ties=True, unit=POINTS)


def _start(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    at_once, *later = table.keys("value", parameter="start_epoch")
    chosen = table.chosen["start_epoch"]
    reference = _value(results, table, "start_epoch", chosen)
    first = _value(results, table, "start_epoch", at_once)
    yield Finding(f"start at {chosen} versus {at_once}", reference, first, by=NOTABLE)
    for epoch in later:
        if epoch != chosen:
            value = _value(results, table, "start_epoch", epoch)
            yield not_inferior(f"start at {epoch} versus {chosen}", value, reference)


def _stop(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    earliest, *later = table.keys("value", parameter="stop_epoch")
    reference = _value(results, table, "stop_epoch", earliest)
    for epoch in later:
        value = _value(results, table, "stop_epoch", epoch)
        yield not_inferior(f"stop at {epoch} versus {earliest}", value, reference)


CLAIMS = [
    Claim(
        "noise-wants-high-rate",
        "Appendix B",
        "The best learning rate tends to rise with the rate of symmetric noise.",
        f"Raising the learning rate from {LOW_RATE} to {HIGH_RATE} gains more validation "
        "accuracy at the higher of two noise rates (Tables 8 and 9).",
        _rate_rises_with_noise,
        ("table8", "table9"),
    ),
    *(
        Claim(
            f"table{table.number}-insensitive",
            "Appendix B",
            "Accuracy depends little on the hyper parameters: other values in "
            f"Table {table.number} do well too.",
            f"Values that cost the paper at most {NOTABLE:g} points versus the chosen value cost "
            f"less than {NOTABLE:g} points here.",
            partial(_others_do_well, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE6, tables.TABLE7, tables.TABLE8, tables.TABLE9)
    ),
    *(
        Claim(
            f"table{table.number}-start",
            "Appendix B",
            "Label updates can start at any epoch after validation accuracy is high, because it "
            f"stays high at a high learning rate (Table {table.number}).",
            f"The earliest start loses more than {NOTABLE:g} points; every later start in the "
            f"table loses less than {NOTABLE:g} points.",
            partial(_start, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
    *(
        Claim(
            f"table{table.number}-stop",
            "Appendix B",
            "Label updates can stop at any epoch after the training loss has converged, at no "
            f"cost in accuracy (Table {table.number}).",
            f"No later stop is {NOTABLE:g} points or more worse than the earliest. Stops before "
            "convergence are not tested: no stop in the table is known to be too early.",
            partial(_stop, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
]
