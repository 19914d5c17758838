"""Tables 5 to 11: hyper parameters, and when to start and to stop updating labels."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.paper import tables
from chainer_jo.paper.claims.claim import Claim, Results
from chainer_jo.paper.claims.decision import NOTABLE, POINTS, Finding, exceeds, keeps_up
from chainer_jo.paper.printed import SensitivityTable
from chainer_jo.paper.trials import Trials

LOW_RATE, HIGH_RATE = 0.01, 0.1
"""Learning rates, below and above every chosen one, that Tables 8 and 9 have in common."""


def _value(results: Results, table: SensitivityTable, parameter: str, value: float) -> Trials:
    return results.trials(f"table{table.number}", parameter=parameter, value=value)


def _others_do_well(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    """The values where the paper loses at most `NOTABLE` points against the chosen one."""
    for parameter, chosen in table.chosen.items():
        at_chosen = _value(results, table, parameter, chosen)
        printed = table.cell(parameter=parameter, value=chosen)
        for value in table.keys("value", parameter=parameter):
            loss = printed - table.cell(parameter=parameter, value=value)
            if value != chosen and loss <= NOTABLE:
                at_value = _value(results, table, parameter, value)
                yield keeps_up(f"{parameter} {value} against {chosen}", at_value, at_chosen)


def _rate_rises_with_noise(results: Results) -> Iterator[Finding]:
    def gain(table: SensitivityTable) -> Trials:
        low, high = (_value(results, table, "learning_rate", lr) for lr in (LOW_RATE, HIGH_RATE))
        return high - low

    noisier, cleaner = tables.TABLE8, tables.TABLE9
    rates = f"r = {noisier.noise_rate} against {cleaner.noise_rate}"
    compared = f"gain from lr {LOW_RATE} to {HIGH_RATE}, {rates}"
    yield exceeds(compared, gain(noisier), gain(cleaner), ties=True, unit=POINTS)


def _start(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    at_once, *later = table.keys("value", parameter="start_epoch")
    chosen = table.chosen["start_epoch"]
    reference = _value(results, table, "start_epoch", chosen)
    first = _value(results, table, "start_epoch", at_once)
    yield exceeds(f"start at {chosen} against {at_once}", reference, first, by=NOTABLE)
    for epoch in later:
        if epoch != chosen:
            value = _value(results, table, "start_epoch", epoch)
            yield keeps_up(f"start at {epoch} against {chosen}", value, reference)


def _stop(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    earliest, *later = table.keys("value", parameter="stop_epoch")
    reference = _value(results, table, "stop_epoch", earliest)
    for epoch in later:
        value = _value(results, table, "stop_epoch", epoch)
        yield keeps_up(f"stop at {epoch} against {earliest}", value, reference)


CLAIMS = [
    Claim(
        "noise-wants-high-rate",
        "Appendix B",
        "The more symmetric noise, the higher the best learning rate tends to be.",
        f"Raising the learning rate from {LOW_RATE} to {HIGH_RATE} gains more validation "
        "accuracy at the higher of two noise rates (Tables 8 and 9).",
        _rate_rises_with_noise,
        ("table8", "table9"),
    ),
    *(
        Claim(
            f"table{table.number}-insensitive",
            "Appendix B",
            "The accuracy depends little on the hyper parameters: other values in "
            f"Table {table.number} do well too.",
            f"Where the paper loses at most {NOTABLE:g} points against the chosen value, so is it "
            "here.",
            partial(_others_do_well, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE6, tables.TABLE7, tables.TABLE8, tables.TABLE9)
    ),
    *(
        Claim(
            f"table{table.number}-start",
            "Appendix B",
            "Label updates can start once the validation accuracy is high: at a high learning rate "
            f"it stays there (Table {table.number}).",
            f"Starting at once loses more than {NOTABLE:g} points, any later start in the table "
            "does not.",
            partial(_start, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
    *(
        Claim(
            f"table{table.number}-stop",
            "Appendix B",
            "Label updates can be stopped late, once the training loss has converged, at no cost "
            f"in accuracy (Table {table.number}).",
            f"No later stop is {NOTABLE:g} points or more worse than the earliest. That they are "
            "not to be stopped before is not asked: no stop in the table is known to be too early.",
            partial(_stop, table=table),
            (f"table{table.number}",),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
]
