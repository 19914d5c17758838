"""Tables 5 to 11: hyper parameters, and when to start and to stop updating labels."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.paper import tables
from chainer_jo.paper.claims.claim import Claim, Results
from chainer_jo.paper.claims.scatter import NOTABLE, Estimate, Finding, exceeds, keeps_up
from chainer_jo.paper.table import SensitivityTable

LOW_RATE, HIGH_RATE = 0.01, 0.1
"""Learning rates, below and above every chosen one, that Tables 6 to 9 have in common."""


def _value(results: Results, table: SensitivityTable, parameter: str, value: float):
    return Estimate(results.trials(f"table{table.number}", parameter=parameter, value=value))


def _against_chosen(results: Results, table: SensitivityTable, breaks_down: bool):
    """The values where the paper loses more than `NOTABLE` points, or those where it does not."""
    for parameter, chosen in table.chosen.items():
        at_chosen = _value(results, table, parameter, chosen)
        printed = table.value(parameter=parameter, value=chosen)
        for value in table.keys("value", parameter=parameter):
            loss = printed - table.value(parameter=parameter, value=value)
            if value == chosen or (loss > NOTABLE) != breaks_down:
                continue
            at_value = _value(results, table, parameter, value)
            if breaks_down:
                yield exceeds(
                    f"{parameter} {chosen} against {value}", at_chosen, at_value, by=NOTABLE
                )
            else:
                yield exceeds(
                    f"{parameter} {value} against {chosen}", at_value, at_chosen, by=-NOTABLE
                )


def _rate_rises_with_noise(results: Results) -> Iterator[Finding]:
    def gain(table: SensitivityTable) -> Estimate:
        low, high = (_value(results, table, "learning_rate", lr) for lr in (LOW_RATE, HIGH_RATE))
        return high - low

    for noisier, cleaner in ((tables.TABLE8, tables.TABLE9), (tables.TABLE6, tables.TABLE7)):
        rates = f"r = {noisier.noise_rate} against {cleaner.noise_rate}"
        what = f"{noisier.noise} noise, gain from lr {LOW_RATE} to {HIGH_RATE}, {rates}"
        yield exceeds(what, gain(noisier), gain(cleaner))


def _start(results: Results, table: SensitivityTable) -> Iterator[Finding]:
    at_once, *later = table.keys("value", parameter="start_epoch")
    chosen = table.chosen["start_epoch"]
    reference = _value(results, table, "start_epoch", chosen)
    first = _value(results, table, "start_epoch", at_once)
    yield exceeds(f"start at {chosen} against {at_once}", reference, first, by=NOTABLE)
    for epoch in later:
        if epoch != chosen:
            value = _value(results, table, "start_epoch", epoch)
            yield exceeds(f"start at {epoch} against {chosen}", value, reference, by=-NOTABLE)


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
        "If the noise rate is high, the optimal learning rate also tends to be high.",
        f"Raising the learning rate from {LOW_RATE} to {HIGH_RATE} gains more validation "
        "accuracy at the higher of two noise rates (Tables 6 to 9).",
        _rate_rises_with_noise,
    ),
    *(
        Claim(
            f"table{table.number}-insensitive",
            "Appendix B",
            "The prediction accuracy is not so sensitive to the hyper parameters and our method "
            "demonstrated good performance with a different set of the hyper parameters",
            f"Table {table.number}: where the paper loses at most {NOTABLE:g} points against the "
            "chosen value, so is it here.",
            partial(_against_chosen, table=table, breaks_down=False),
        )
        for table in (tables.TABLE6, tables.TABLE7, tables.TABLE8, tables.TABLE9)
    ),
    *(
        Claim(
            f"table{table.number}-breaks-down",
            f"Table {table.number}",
            "Validation accuracy with different hyper parameters in the triple test",
            f"Table {table.number}: where the paper loses more than {NOTABLE:g} points against "
            "the chosen value, so is it here.",
            partial(_against_chosen, table=table, breaks_down=True),
        )
        for table in (tables.TABLE6, tables.TABLE7, tables.TABLE8, tables.TABLE9)
    ),
    *(
        Claim(
            f"table{table.number}-start",
            "Appendix B",
            "When we train the network with a high learning rate, the prediction accuracy "
            "retains high value, and thus we can start label-updating when the validation "
            "accuracy once reach high value.",
            f"Table {table.number}: starting at once loses more than {NOTABLE:g} points, any "
            "later start in the table does not.",
            partial(_start, table=table),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
    *(
        Claim(
            f"table{table.number}-stop",
            "Appendix B",
            "Label-updating should be stopped after the training loss converge.",
            f"Table {table.number}: no later stop is worse than the earliest beyond the scatter.",
            partial(_stop, table=table),
        )
        for table in (tables.TABLE10, tables.TABLE11)
    ),
]
