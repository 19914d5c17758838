"""Tables 1 to 3: the joint method versus cross entropy, forward correction and CNN-CRF."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import (
    NOTABLE,
    POINTS,
    Finding,
    not_inferior,
    on_average,
)
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.paper.settings import CROSS_ENTROPY_DROP_EPOCH, LEAST_GAIN_NOISE_RATE
from chainer_jo.reproduction.trials import Trials

#: Names of the accuracies of Tables 1 and 2, by key.
ACCURACIES = {"test": "test", "recovery": "label"}
OTHERS = tuple(method for method in tables.TABLE2.keys("method") if method != "joint")


def _noise_rates(table: str) -> tuple[float, ...]:
    """The noise rates above 0 of "table1" or "table2"."""
    return tuple(r for r in getattr(tables, table.upper()).keys("noise_rate") if r > 0)


def _cell(
    results: Results, table: str, method: str, score: str, accuracy: str, rate: float
) -> Trials:
    return results.trials(table, method=method, score=score, accuracy=accuracy, noise_rate=rate)


def _beats(
    results: Results,
    table: str,
    others: tuple[str, ...],
    accuracy: str,
    scores: tuple[str, ...] = ("last", "best"),
    by: float = 0.0,
) -> Iterator[Finding]:
    rates = getattr(tables, table.upper()).keys("noise_rate")
    for score in scores:
        ours, *theirs = (
            {rate: _cell(results, table, method, score, accuracy, rate) for rate in rates}
            for method in ("joint", *others)
        )
        for method, each in zip(others, theirs, strict=True):
            yield on_average(f"{score}, ours versus {tables.METHODS[method]}", ours, each, by)


def _noise_degrades(results: Results) -> Iterator[Finding]:
    accuracy = {
        rate: _cell(results, "table1", "cross_entropy", "last", "test", rate)
        for rate in tables.TABLE1.keys("noise_rate")
    }
    clean = accuracy.pop(0)
    for rate, noisy in accuracy.items():
        yield Finding(f"r = 0 versus {rate}", clean, noisy, ties=True)


def _loss_misleads(results: Results) -> Iterator[Finding]:
    for rate in _noise_rates("table1"):
        curve = partial(results.curve, "table1", method="cross_entropy", noise_rate=rate)
        accuracy, loss = curve(), curve(logged="cross_entropy")
        compared = f"r = {rate}, peak versus epoch of the lowest training loss"
        yield Finding(compared, phases.peak(accuracy), phases.at_lowest(accuracy, loss), by=NOTABLE)


def _corrects(results: Results) -> Iterator[Finding]:
    for table, noise in (("table1", "symmetric"), ("table2", "asymmetric")):
        for rate in _noise_rates(table):
            ours = _cell(results, table, "joint", "last", "recovery", rate)
            at_first = _cell(results, table, "noisy_labels", "initial", "recovery", rate)
            compared = f"{noise}, r = {rate}, label accuracy after versus before"
            yield Finding(compared, ours, at_first, ties=True)


def _falls(results: Results, table: str, method: str) -> Iterator[Finding]:
    schedule = results.schedule("second_step")
    for rate in _noise_rates(table):
        accuracy = results.curve(table, method=method, noise_rate=rate)
        after = phases.after_drop(accuracy, schedule)
        compared = f"r = {rate}, after the drop versus end"
        yield Finding(compared, after, phases.end(accuracy), ties=True)


def _fits_noise(results: Results) -> Iterator[Finding]:
    schedule = results.schedule("second_step")
    for rate in _noise_rates("table1"):
        predicted = results.curve(
            "table1", logged="accuracy/noisy", method="cross_entropy", noise_rate=rate
        )
        at_drop, before = phases.rises_at_drop(predicted, schedule)
        compared = f"r = {rate}, rise of noisy labels predicted, at versus before the drop"
        yield Finding(compared, at_drop, before, unit=POINTS)


def _ends_higher(results: Results, table: str) -> Iterator[Finding]:
    for rate in _noise_rates(table):
        ours, others = (
            phases.end(results.curve(table, method=method, noise_rate=rate))
            for method in ("joint", "cross_entropy")
        )
        yield Finding(f"r = {rate}, end, ours versus cross entropy", ours, others, ties=True)


def _keeps(results: Results, table: str) -> Iterator[Finding]:
    schedule = results.schedule("second_step")
    for rate in _noise_rates(table):
        last = _cell(results, table, "joint", "last", "test", rate)
        best = _cell(results, table, "joint", "best", "test", rate)
        yield not_inferior(f"r = {rate}, last versus best", last, best)
        accuracy = results.curve(table, method="joint", noise_rate=rate)
        after = phases.after_drop(accuracy, schedule)
        yield not_inferior(f"r = {rate}, end versus after the drop", phases.end(accuracy), after)


def _gain(results: Results, rate: float) -> Trials:
    """Our last test accuracy minus the best score of the best other method."""
    ours = _cell(results, "table2", "joint", "last", "test", rate)
    theirs = [_cell(results, "table2", method, "best", "test", rate) for method in OTHERS]
    if not all(cell.finished for cell in theirs):
        return Trials({})  # which one is the best is not known yet
    return ours - max(theirs, key=lambda cell: cell.mean)


def _gains_least(results: Results) -> Iterator[Finding]:
    hardest = _gain(results, LEAST_GAIN_NOISE_RATE)
    for rate in _noise_rates("table2"):
        if rate != LEAST_GAIN_NOISE_RATE:
            compared = f"gain at r = {rate} versus {LEAST_GAIN_NOISE_RATE}"
            yield Finding(compared, _gain(results, rate), hardest, ties=True, unit=POINTS)


def _exchanged_classes(results: Results) -> Iterator[Finding]:
    def accuracy(classes: str, rate: float) -> Trials:
        return results.trials("exchanged_classes", classes=classes, noise_rate=rate)

    *_, lower_rate, rate = _noise_rates("table2")
    exchanged, other = accuracy("exchanged", rate), accuracy("other", rate)
    yield Finding(f"r = {rate}, other classes versus cat and dog", other, exchanged, ties=True)
    losses = accuracy("exchanged", lower_rate) - exchanged, accuracy("other", lower_rate) - other
    compared = f"loss from r = {lower_rate} to {rate}, cat and dog versus other classes"
    yield Finding(compared, *losses, ties=True, unit=POINTS)


def _beats_quoted_forward(results: Results) -> Iterator[Finding]:
    ours = results.trials("table3", method="joint", score="last", accuracy="test")
    quoted = Trials.of_all(tables.TABLE3.cells["forward", "quoted"])
    yield Finding("ours versus Forward, as quoted (#2)", ours, quoted, ties=True)


_AFTER_DROP = (
    "Test accuracy just after the first learning rate drop versus at the end of training, at every "
    "noise rate."
)
_UNTIL_THE_END = (
    f"At every noise rate, our last test accuracy is less than {NOTABLE:g} points below our best. "
    f"The end of training is less than {NOTABLE:g} points below the first learning rate drop."
)

MEMORISED = "symmetric-cross-entropy-falls"
"""The claim that others need: if cross entropy does not overfit, it cannot lose."""

CLAIMS = [
    Claim(
        "noise-degrades",
        "Abstract",
        "A network trained on noisy labels performs worse.",
        "Last test accuracy of cross entropy without noise versus every noise rate (Table 1).",
        _noise_degrades,
        ("table1",),
        rests_on=MEMORISED,
    ),
    Claim(
        "training-loss-misleads",
        "Section 2.2",
        "The loss on noisy labels does not measure performance on true labels, so early stopping "
        "by this loss does not help.",
        "At the epoch of the lowest training loss of cross entropy, test accuracy is more than "
        f"{NOTABLE:g} points below its peak, at every noise rate (Table 1).",
        _loss_misleads,
        ("table1",),
        rests_on=MEMORISED,
    ),
    Claim(
        "labels-are-corrected",
        "Abstract",
        "Updating network and labels in turn corrects noisy labels during training.",
        "Label accuracy is higher after the first step than before, at every noise rate above 0 "
        "(Tables 1 and 2).",
        _corrects,
        ("table1", "table2"),
    ),
    *(
        Claim(
            f"symmetric-{accuracy}-is-better",
            "Section 5.5",
            f"Under symmetric noise, the joint method has the better {name} accuracy overall.",
            f"Mean of the {name} accuracy over all noise rates, ours versus cross entropy, at "
            "the last and at the best epoch.",
            partial(_beats, table="table1", others=("cross_entropy",), accuracy=accuracy),
            ("table1",),
            rests_on=MEMORISED,
        )
        for accuracy, name in ACCURACIES.items()
    ),
    *(
        Claim(
            f"asymmetric-{accuracy}-is-clearly-better",
            "Section 5.6",
            f"Under asymmetric noise, the joint method has a significantly better {name} accuracy.",
            f"Mean of the {name} accuracy over all noise rates, ours versus each other method, "
            "at the last and at the best epoch.",
            partial(_beats, table="table2", others=OTHERS, accuracy=accuracy),
            ("table2",),
            rests_on=MEMORISED,
            bounds=partial(
                _beats,
                table="table2",
                others=OTHERS,
                accuracy=accuracy,
                scores=("last",),
                by=NOTABLE,
            ),
            bounded_check=f"Ours is more than {NOTABLE:g} points above at the last epoch.",
        )
        for accuracy, name in ACCURACIES.items()
    ),
    Claim(
        MEMORISED,
        "Section 5.5",
        "With cross entropy on the noisy labels, test accuracy drops from about epoch "
        f"{CROSS_ENTROPY_DROP_EPOCH}, where the learning rate is first divided by 10.",
        _AFTER_DROP,
        partial(_falls, table="table1", method="cross_entropy"),
        ("table1",),
    ),
    Claim(
        "low-rate-fits-noise",
        "Section 5.5",
        "A lower learning rate helps the network to memorise the noisy labels.",
        "At every noise rate, the share of noisy labels that cross entropy predicts rises more "
        "at the first learning rate drop than right before. A rise is measured from one twentieth "
        "of the epochs to the next.",
        _fits_noise,
        ("table1",),
        rests_on=MEMORISED,
    ),
    Claim(
        "symmetric-ours-keeps",
        "Section 5.5",
        "On the labels of the joint method, test accuracy stays high until the end.",
        "Test accuracy at the end of training, ours versus cross entropy, at every noise rate.",
        partial(_ends_higher, table="table1"),
        ("table1",),
        rests_on=MEMORISED,
        bounds=partial(_keeps, table="table1"),
        bounded_check=_UNTIL_THE_END,
    ),
    Claim(
        "asymmetric-cross-entropy-falls",
        "Section 5.6",
        "With cross entropy on the noisy labels, test accuracy drops at a low learning rate.",
        _AFTER_DROP,
        partial(_falls, table="table2", method="cross_entropy"),
        ("table2",),
        rests_on=MEMORISED,
    ),
    Claim(
        "asymmetric-forward-falls",
        "Section 5.6",
        "With forward correction, test accuracy drops as with cross entropy.",
        _AFTER_DROP,
        partial(_falls, table="table2", method="forward"),
        ("table2",),
        rests_on="asymmetric-cross-entropy-falls",
    ),
    Claim(
        "asymmetric-ours-keeps",
        "Section 5.6",
        "With the joint method, test accuracy stays high and does not drop.",
        _UNTIL_THE_END,
        partial(_keeps, table="table2"),
        ("table2",),
    ),
    Claim(
        "half-asymmetric-gains-least",
        "Section 5.6",
        "The joint method gains little at a noise rate of 50 %, and only there.",
        "The gain is our last test accuracy minus the best score of the best other method. It is "
        "smaller at r = 0.5 than at every other noise rate.",
        _gains_least,
        ("table2",),
    ),
    Claim(
        "cat-and-dog-are-why",
        "Section 5.6",
        "The joint method gains little at 50 % because the noise exchanges cats and dogs, which "
        "then cannot be told apart.",
        "Label accuracy on cats and dogs is below the other classes' at r = 0.5, and it "
        "decreases more from r = 0.4 to 0.5.",
        _exchanged_classes,
        ("table2",),
        own_images=True,
        rests_on="half-asymmetric-gains-least",
    ),
    Claim(
        "clothing1m-beats-forward",
        "Section 5.8",
        "On Clothing1M, the joint method has a better test accuracy than Forward (#2).",
        "Our last test accuracy versus the accuracy quoted for Forward (Table 3).",
        _beats_quoted_forward,
        ("table3",),
        own_images=True,
    ),
]
