"""The numbers that the words of each claim compare, in the order of `statements`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import POINTS, Comparison, Results
from chainer_jo.reproduction.paper import settings, tables
from chainer_jo.reproduction.paper.printed import SensitivityTable
from chainer_jo.reproduction.trials import Trials

BOUND = 2.0
"""Percentage points. A "drop" is a larger loss; "keeps", "stays" and "depends little" a smaller."""
ALMOST_ALL = 95.0
"""Label accuracy (percent) above which labels are called almost all correct."""

NATS = "nats"
CLASSES = 10
SCORES = BEST, LAST = "best", "last"
ACCURACIES = {"test": "test accuracy", "recovery": "label accuracy"}
METHODS = {"cross_entropy": "cross entropy", "forward": "Forward", "cnn_crf": "CNN-CRF"}
RATES = {
    f"table{table.number}": [rate for rate in table.keys("noise_rate") if rate > 0]
    for table in (tables.TABLE1, tables.TABLE2)
}
HIGH_RATE, LOW_RATE = settings.FIGURE2_LEARNING_RATES
BEST_HARD_RULE = f"top{settings.FIGURE4_BEST_TOP}"
HARD_RULES = (*(f"top{k}" for k in settings.FIGURE4_TOPS), "all")
NOISES = {table.noise: table.noise_rate for table in (tables.TABLE6, tables.TABLE8)}
"""Kind and rate of the noise in the paper's tables of hyper parameters, and of the ablations."""
QUANTITIES = {
    "first": "label accuracy after the first update",
    "last": "label accuracy at the end",
    "above_0.99": "share of labels with p over 0.99",
}
ABLATIONS = {"averaging": "mean of epochs > one epoch alone", "entropy": "with L_e > without"}
LESS_NOISY, NOISIER = (f"symmetric_{rate}" for rate in settings.FIGURES_5_6_NOISE_RATES)
LABELS = {LESS_NOISY: "symmetric 0.3", NOISIER: "symmetric 0.5", "pseudo": "pseudo labels"}
LOSSES = {"cross_entropy": "cross entropy", "classification": "KL divergence"}
"""The training loss by its name in the log; the KL divergence (eq. 6) is the objective."""
PHASES = {"peak": phases.peak, "end": phases.end}
COMMON_RATES = (0.01, 0.1)
"""Learning rates, below and above every chosen one, that Tables 8 and 9 have in common."""

Comparisons = Iterator[Comparison]
Sides = Sequence[Trials]


def drops(what: str, names: Sequence[str], at: str, sides: Sides) -> Comparison:
    """A loss of more than `BOUND` points: before, after, and their names."""
    return Comparison(f"{what}: {names[0]} > {names[1]} + {BOUND:g}", at, sides, by=BOUND)


def keeps(what: str, names: Sequence[str], at: str, sides: Sides) -> Comparison:
    """A loss of less than `BOUND` points: after, before, and their names."""
    return Comparison(f"{what}: {names[0]} > {names[1]} - {BOUND:g}", at, sides, by=-BOUND)


def noise_entropy(rate: float) -> float:
    """Entropy (nats) of a label under symmetric noise (eq. 13), given the true label: the lowest
    mean training loss of a model that has memorised no corrupted label."""
    each = rate / CLASSES
    from scipy.special import entr

    return float(entr(1 - rate + each) + (CLASSES - 1) * entr(each))


def _cell(results: Results, table: str, *keys: str | float) -> Trials:
    """Table 1 or 2 by method, score, accuracy and noise rate."""
    names = tables.TABLE1.names
    return results.trials(table, **dict(zip(names, keys, strict=True)))


def noise_degrades(results: Results) -> Comparisons:
    for score, rate in product(SCORES, RATES["table1"]):
        cell = partial(_cell, results, "table1", "cross_entropy", score, "test")
        compared = f"test accuracy of cross entropy, {score} epoch: no noise > noise"
        yield Comparison(compared, f"r = {rate}", (cell(0), cell(rate)))


def loss_misleads(results: Results) -> Comparisons:
    compared = "test accuracy of cross entropy: best epoch > epoch of the lowest training loss"
    for rate in RATES["table1"]:
        best = _cell(results, "table1", "cross_entropy", BEST, "test", rate)
        curve = partial(results.curve, "table1", method="cross_entropy", noise_rate=rate)
        at_lowest = phases.at_lowest(curve(), curve(logged="cross_entropy"))
        yield Comparison(compared, f"r = {rate}", (best, at_lowest))


def corrects(results: Results) -> Comparisons:
    for table, noise in (("table1", "symmetric"), ("table2", "asymmetric")):
        for rate in RATES[table]:
            after = _cell(results, table, "joint", LAST, "recovery", rate)
            before = _cell(results, table, "noisy_labels", "initial", "recovery", rate)
            compared = f"label accuracy, {noise} noise: after the first step > before"
            yield Comparison(compared, f"r = {rate}", (after, before))


def rule_is_better(results: Results, rule: str, accuracy: str) -> Comparisons:
    """A label rule versus every other rule of hard labels."""
    for other in HARD_RULES:
        if other != rule:
            sides = [results.trials("figure4", rule=r, accuracy=accuracy) for r in (rule, other)]
            compared = f"{ACCURACIES[accuracy]}: {rule} > other hard labels"
            yield Comparison(compared, other, sides)


def ablation_is_worse(results: Results, removed: str, quantities: Sequence[str]) -> Comparisons:
    """The first step without a part of it has fewer correct, or fewer sure, labels."""
    for quantity, (noise, rate) in product(quantities, NOISES.items()):
        of_noise = partial(results.trials, "ablations", noise=noise, quantity=quantity)
        sides = [of_noise(removed=part) for part in ("nothing", removed)]
        compared = f"{QUANTITIES[quantity]}: {ABLATIONS[removed]}"
        yield Comparison(compared, f"{noise} {rate}", sides)


def collapses_without_prior(results: Results) -> Comparisons:
    limit = Trials.of_all(100 - ALMOST_ALL)
    for noise, rate in NOISES.items():
        keys = {"noise": noise, "removed": "prior", "quantity": "except_best_class"}
        compared = f"without L_p: {limit.mean:g} > label accuracy except the best class"
        yield Comparison(compared, f"{noise} {rate}", (limit, results.trials("ablations", **keys)))


def is_stuck(results: Results) -> Comparisons:
    for noise, rate in NOISES.items():
        label_accuracy = partial(results.trials, "ablations", noise=noise, removed="both terms")
        change = abs(label_accuracy(quantity="last") - label_accuracy(quantity="first"))
        compared = (
            f"without both terms: {BOUND:g} > change of label accuracy after the first update"
        )
        yield Comparison(compared, f"{noise} {rate}", (Trials.of_all(BOUND), change), unit=POINTS)


def peak_to_end(results: Results, rate: float, drop: bool) -> Comparisons:
    """Whether the test accuracy at a constant learning rate drops from its peak, or keeps it."""
    curve, names = results.curve("figure2", learning_rate=rate), ["peak", "end"]
    sides, words = [phases.peak(curve), phases.end(curve)], drops if drop else keeps
    order = slice(None, None, 1 if drop else -1)
    yield words("test accuracy", names[order], f"lr = {rate}", sides[order])


def _high_rate_loss(results: Results, rate: float) -> Trials:
    curve = results.curve("figure3", noise_rate=rate)
    return phases.before_drop(curve, results.schedule("figure3"))


def memorises(results: Results, at_end: bool) -> Comparisons:
    """A loss below the entropy of the noise at the end, or above it at the high learning rate."""
    entropy, high_rate = "entropy of the noise", "before the rate drop"
    names = f"{entropy} > end" if at_end else f"{high_rate} > {entropy}"
    for rate in RATES["table1"]:
        limit = Trials.of_all(noise_entropy(rate))
        end = phases.end(results.curve("figure3", noise_rate=rate))
        sides = [limit, end] if at_end else [_high_rate_loss(results, rate), limit]
        yield Comparison(f"training loss: {names}", f"r = {rate}", sides, unit=NATS)


def loss_rises(results: Results) -> Comparisons:
    compared = "training loss before the rate drop: more noise > less noise"
    for lower, higher in pairwise(tables.TABLE1.keys("noise_rate")):
        sides = [_high_rate_loss(results, rate) for rate in (higher, lower)]
        yield Comparison(compared, f"r = {higher}, {lower}", sides, unit=NATS)


def converges_faster(results: Results) -> Comparisons:
    soft = results.curve("figure4", rule="soft")
    for rule in HARD_RULES:
        hard = results.curve("figure4", rule=rule)
        level = phases.end(hard) - Trials.of_all(BOUND)
        sides = [phases.epochs_until(curve, level) for curve in (hard, soft)]
        compared = f"epochs to {BOUND:g} points below the end of hard labels: hard > soft"
        yield Comparison(compared, rule, sides, unit="epochs")


def better_at_equal_recovery(results: Results) -> Comparisons:
    for rules in (("soft", BEST_HARD_RULE), (BEST_HARD_RULE, "soft")):
        sides = [results.trials("figure4", rule=rule, accuracy="recovery") for rule in rules]
        yield replace(keeps("situation, label accuracy", rules, "", sides), situation=True)
    tested = partial(results.trials, "figure4", accuracy="test")
    both = tested(rule="soft"), tested(rule=BEST_HARD_RULE)
    yield Comparison(f"test accuracy: soft > {BEST_HARD_RULE}", "", both)


def beats(results: Results, table: str, others: Sequence[str], accuracy: str) -> Comparisons:
    """The joint method versus others at each noise rate, at the best and at the last epoch."""
    for other, score, rate in product(others, SCORES, RATES[table]):
        sides = [_cell(results, table, m, score, accuracy, rate) for m in ("joint", other)]
        compared = f"{ACCURACIES[accuracy]}, {score} epoch: joint > {METHODS[other]}"
        yield Comparison(compared, f"r = {rate}", sides)


def best_to_last(results: Results, table: str, method: str, drop: bool) -> Comparisons:
    """Whether a method's test accuracy drops from the best to the last epoch, or keeps it."""
    names, words = ((BEST, LAST), drops) if drop else ((LAST, BEST), keeps)
    for rate in RATES[table]:
        sides = [_cell(results, table, method, score, "test", rate) for score in names]
        yield words("test accuracy", names, f"r = {rate}", sides)


def low_rate_fits_noise(results: Results) -> Comparisons:
    for rate in RATES["table1"]:
        keys = {"logged": "accuracy/noisy", "method": "cross_entropy", "noise_rate": rate}
        predicted = results.curve("table1", **keys)
        sides = phases.rises_at_drop(predicted, results.schedule("second_step"))
        compared = "rise of noisy labels predicted: across the rate drop > before"
        yield Comparison(compared, f"r = {rate}", sides, unit=POINTS)


def _gain(results: Results, rate: float) -> Trials:
    """Our last test accuracy minus the best score of the best other method."""
    ours = _cell(results, "table2", "joint", LAST, "test", rate)
    theirs = [_cell(results, "table2", method, BEST, "test", rate) for method in METHODS]
    if not all(cell.finished for cell in theirs):
        return Trials({})  # which one is the best is not known yet
    return ours - max(theirs, key=lambda cell: cell.mean)


def gains_least(results: Results) -> Comparisons:
    hardest = settings.LEAST_GAIN_NOISE_RATE
    for rate in RATES["table2"]:
        if rate != hardest:
            sides = _gain(results, rate), _gain(results, hardest)
            compared = f"gain over the best other method: less noise > r = {hardest}"
            yield Comparison(compared, f"r = {rate}", sides, unit=POINTS)


def exchanged_classes(results: Results) -> Comparisons:
    *_, lower, rate = RATES["table2"]
    right = partial(results.trials, "exchanged_classes")
    pets, other = (partial(right, classes=classes) for classes in ("exchanged", "other"))
    sides = other(noise_rate=rate), pets(noise_rate=rate)
    yield Comparison("label accuracy: other classes > cat and dog", f"r = {rate}", sides)
    losses = [of(noise_rate=lower) - of(noise_rate=rate) for of in (pets, other)]
    compared = "loss of label accuracy: cat and dog > other classes"
    yield Comparison(compared, f"r = {lower} to {rate}", losses, unit=POINTS)


def _right(results: Results, labels: str, stage: str = "initial") -> Trials:
    return results.trials("label_accuracy", labels=labels, stage=stage)


def _loss(results: Results, labels: str, stage: str, loss: str = "cross_entropy") -> Trials:
    curves = results.curve("figure6", labels=labels, stage=stage, logged=loss)
    return phases.before_drop(curves, results.schedule("second_step"))


def pseudo_loss_is_lower(results: Results) -> Comparisons:
    names, both = f"{LABELS[LESS_NOISY]} > pseudo labels", (LESS_NOISY, "pseudo")
    sides = [_right(results, labels) for labels in both]
    yield Comparison(f"situation, label accuracy: {names}", "", sides, situation=True)
    sides = [_loss(results, labels, "initial") for labels in both]
    yield Comparison(f"training loss before the rate drop: {names}", "", sides, unit=NATS)


def pseudo_is_corrected_less(results: Results) -> Comparisons:
    for labels in (LESS_NOISY, NOISIER):
        both = labels, "pseudo"
        sides = [_right(results, each, "updated") - _right(results, each) for each in both]
        compared = "gain of label accuracy: symmetric noise > pseudo labels"
        yield Comparison(compared, LABELS[labels], sides, unit=POINTS)


def _tested(results: Results, phase: str, *sides: tuple[str, str]) -> list[Trials]:
    """Test accuracies of Figure 5 at a phase of the curves, each by its labels and stage."""
    curves = (results.curve("figure5", labels=labels, stage=stage) for labels, stage in sides)
    return [PHASES[phase](curve) for curve in curves]


def pseudo_accuracy_is_lower(results: Results, stage: str) -> Comparisons:
    right, name = [_right(results, labels) for labels in ("pseudo", NOISIER)], LABELS[NOISIER]
    compared = f"situation, label accuracy: pseudo labels > {name}"
    yield Comparison(compared, "", right, situation=True)
    for phase in PHASES:
        sides = _tested(results, phase, (NOISIER, stage), ("pseudo", stage))
        compared = f"test accuracy, {phase}: {name} > pseudo labels"
        yield Comparison(compared, f"{stage} labels", sides)


def truth_is_better(results: Results) -> Comparisons:
    for phase, (labels, at) in product(PHASES, LABELS.items()):
        sides = _tested(results, phase, ("ground_truth", "initial"), (labels, "updated"))
        yield Comparison(f"test accuracy, {phase}: true labels > updated labels", at, sides)


def follows_the_truth(results: Results) -> Comparisons:
    truth = _loss(results, "ground_truth", "initial")
    for (loss, name), labels in product(LOSSES.items(), LABELS):
        stages = "initial", "updated"
        sides = [abs(_loss(results, labels, stage, loss) - truth) for stage in stages]
        compared = f"distance to the {name} of true labels: initial > updated labels"
        yield Comparison(compared, LABELS[labels], sides, unit=NATS)


def beats_quoted_forward(results: Results) -> Comparisons:
    quoted = Trials.of_all(tables.TABLE3.cells["forward", "quoted"])
    for score in SCORES:
        ours = results.trials("table3", method="joint", score=score, accuracy="test")
        yield Comparison(
            "test accuracy: joint > Forward as quoted", f"{score} epoch", (ours, quoted)
        )


def _value(results: Results, table: SensitivityTable, parameter: str, value: float) -> Trials:
    return results.trials(f"table{table.number}", parameter=parameter, value=value)


def noise_wants_high_rate(results: Results) -> Comparisons:
    def gain(table: SensitivityTable) -> Trials:
        low, high = (_value(results, table, "learning_rate", rate) for rate in COMMON_RATES)
        return high - low

    noisier, cleaner = tables.TABLE8, tables.TABLE9
    rates = f"r = {noisier.noise_rate} > r = {cleaner.noise_rate}"
    compared = "gain from lr {} to {}: {}".format(*COMMON_RATES, rates)
    yield Comparison(compared, "", (gain(noisier), gain(cleaner)), unit=POINTS)


def other_values_do_well(results: Results, table: SensitivityTable) -> Comparisons:
    """The values at which the paper loses at most `BOUND` points versus the chosen value."""
    for (parameter, value), accuracy in table.cells.items():
        chosen = table.chosen[parameter]
        if value != chosen and table.cells[parameter, chosen] - accuracy <= BOUND:
            sides = [_value(results, table, parameter, each) for each in (value, chosen)]
            names = "other value", f"chosen {chosen}"
            yield keeps(parameter.replace("_", " "), names, str(value), sides)


def updates_start(results: Results, table: SensitivityTable) -> Comparisons:
    cell = partial(_value, results, table, "start_epoch")
    at_once, *epochs = table.keys("value", parameter="start_epoch")
    chosen = table.chosen["start_epoch"]
    names = f"start at {chosen}", f"start at {at_once}"
    yield drops("validation accuracy", names, "", [cell(chosen), cell(at_once)])
    for epoch in epochs:
        if epoch != chosen:
            names = "another start", f"start at {chosen}"
            yield keeps("validation accuracy", names, str(epoch), [cell(epoch), cell(chosen)])


def updates_stop(results: Results, table: SensitivityTable) -> Comparisons:
    cell = partial(_value, results, table, "stop_epoch")
    earliest, *epochs = table.keys("value", parameter="stop_epoch")
    for epoch in epochs:
        names = "later stop", f"stop at {earliest}"
        yield keeps("validation accuracy", names, str(epoch), [cell(epoch), cell(earliest)])


def labels_by_probability(results: Results, place: int, wrong: bool) -> Comparisons:
    """Labels in a range of Tables 12 and 13: almost all correct, or most of them wrong."""
    for table in (tables.TABLE12, tables.TABLE13):
        name = table.keys("range")[place]
        right = results.trials(f"table{table.number}", quantity="accuracy", range=name)
        sides = (Trials.of_all(100) - right, right) if wrong else (right, Trials.of_all(ALMOST_ALL))
        claimed = "wrong > correct" if wrong else f"correct > {ALMOST_ALL:g}"
        yield Comparison(f"labels with p in {name}: {claimed}", f"Table {table.number}", sides)
