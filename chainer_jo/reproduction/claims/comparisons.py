"""The numbers that the words of each claim compare."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import Comparison, Results
from chainer_jo.reproduction.paper import settings, tables
from chainer_jo.reproduction.paper.printed import SensitivityTable
from chainer_jo.reproduction.trials import Trials

BOUND = 2.0
"""Percentage points. A "drop" is a larger loss; "keeps", "stays" and "depends little" a smaller."""
ALMOST_ALL = 95.0
"""Label accuracy (percent) above which labels are called almost all correct."""

NATS = "nats"
BEST, LAST = SCORES = ("best", "last")
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
QUANTITIES = {"first": "label accuracy after the first update", "last": "label accuracy at the end"}
QUANTITIES["above_0.99"] = "share of labels with p over 0.99"
ABLATIONS = {"averaging": "mean of epochs > one epoch alone", "entropy": "with L_e > without"}
LESS_NOISY, NOISIER = (f"symmetric_{rate}" for rate in settings.FIGURES_5_6_NOISE_RATES)
LABELS = {LESS_NOISY: "symmetric 0.3", NOISIER: "symmetric 0.5", "pseudo": "pseudo labels"}
LOSSES = {"cross_entropy": "cross entropy", "classification": "KL divergence"}  # eq. 6
PHASES = {"peak": phases.peak, "end": phases.end}
COMMON_RATES = (0.01, 0.1)
"""Learning rates, below and above every chosen one, that Tables 8 and 9 have in common."""


def loss(what: str, at: str, *both: tuple[str, Trials], drop: bool) -> Comparison:
    """A ``drop`` loses more than `BOUND` points, else less; names and numbers before and after."""
    (first, a), (second, b) = both if drop else both[::-1]
    compared = f"{what}: {first} > {second} {'+' if drop else '-'} {BOUND:g}"
    return Comparison(compared, at, [a, b], by=BOUND if drop else -BOUND)


@dataclass(frozen=True)
class Pairs:
    """The pairs of numbers from ``results`` that each claim compares."""

    results: Results

    def _cell(self, table: str, *keys: str | float) -> Trials:
        """A number of Table 1 or 2 by method, score, accuracy and noise rate."""
        return self.results.trials(table, **dict(zip(tables.TABLE1.names, keys, strict=True)))

    def noise_degrades(self) -> Iterator[Comparison]:
        for score, rate in product(SCORES, RATES["table1"]):
            sides = [self._cell("table1", "cross_entropy", score, "test", r) for r in (0, rate)]
            compared = f"test accuracy of cross entropy, {score} epoch: no noise > noise"
            yield Comparison(compared, f"r = {rate}", sides)

    def loss_misleads(self) -> Iterator[Comparison]:
        compared = "test accuracy of cross entropy: best epoch > epoch of the lowest training loss"
        for rate in RATES["table1"]:
            best = self._cell("table1", "cross_entropy", BEST, "test", rate)
            curve = partial(self.results.curve, "table1", method="cross_entropy", noise_rate=rate)
            at_lowest = phases.at_lowest(curve(), curve(logged="cross_entropy"))
            yield Comparison(compared, f"r = {rate}", [best, at_lowest])

    def corrects(self) -> Iterator[Comparison]:
        for table, noise in (("table1", "symmetric"), ("table2", "asymmetric")):
            for rate in RATES[table]:
                after = self._cell(table, "joint", LAST, "recovery", rate)
                before = self._cell(table, "noisy_labels", "initial", "recovery", rate)
                compared = f"label accuracy, {noise} noise: after the first step > before"
                yield Comparison(compared, f"r = {rate}", [after, before])

    def rule_is_better(self, rule: str, accuracy: str) -> Iterator[Comparison]:
        """A label rule versus every other rule of hard labels (Figure 4)."""
        number = partial(self.results.trials, "figure4", accuracy=accuracy)
        for other in HARD_RULES:
            if other != rule:
                compared = f"{ACCURACIES[accuracy]}: {rule} > other hard labels"
                yield Comparison(compared, other, [number(rule=rule), number(rule=other)])

    def ablation_is_worse(self, removed: str, quantities: Sequence[str]) -> Iterator[Comparison]:
        """The first step without a part of it has fewer correct, or fewer sure, labels."""
        for quantity, (noise, rate) in product(quantities, NOISES.items()):
            number = partial(self.results.trials, "ablations", noise=noise, quantity=quantity)
            sides = [number(removed=part) for part in ("nothing", removed)]
            compared = f"{QUANTITIES[quantity]}: {ABLATIONS[removed]}"
            yield Comparison(compared, f"{noise} {rate}", sides)

    def collapses(self) -> Iterator[Comparison]:
        limit = Trials.of_all(100 - ALMOST_ALL)
        for noise, rate in NOISES.items():
            keys = {"noise": noise, "removed": "prior", "quantity": "except_best_class"}
            sides = [limit, self.results.trials("ablations", **keys)]
            compared = f"without L_p: {limit.mean:g} > label accuracy except the best class"
            yield Comparison(compared, f"{noise} {rate}", sides)

    def is_stuck(self) -> Iterator[Comparison]:
        change = "change of label accuracy after the first update"
        for noise, rate in NOISES.items():
            number = partial(self.results.trials, "ablations", noise=noise, removed="both terms")
            sides = [Trials.of_all(BOUND), abs(number(quantity=LAST) - number(quantity="first"))]
            compared = f"without both terms: {BOUND:g} > {change}"
            yield Comparison(compared, f"{noise} {rate}", sides)

    def peak_to_end(self, rate: float, drop: bool) -> Iterator[Comparison]:
        """Test accuracy at a constant learning rate (Figure 2)."""
        curve = self.results.curve("figure2", learning_rate=rate)
        both = ((name, phase(curve)) for name, phase in PHASES.items())
        yield loss("test accuracy", f"lr = {rate}", *both, drop=drop)

    def _high_rate_loss(self, rate: float) -> Trials:
        curve = self.results.curve("figure3", noise_rate=rate)
        return phases.before_drop(curve, self.results.schedule("figure3"))

    def noise_is_fitted(self) -> Iterator[Comparison]:
        for rate in RATES["table1"]:
            end = phases.end(self.results.curve("figure3", noise_rate=rate))
            sides = [Trials.of_all(settings.noise_entropy(rate)), end]
            compared = "training loss: entropy of the noise > end"
            yield Comparison(compared, f"r = {rate}", sides, unit=NATS)

    def loss_rises(self) -> Iterator[Comparison]:
        for lower, higher in pairwise(tables.TABLE1.keys("noise_rate")):
            sides = [self._high_rate_loss(rate) for rate in (higher, lower)]
            compared = "training loss before the rate drop: more noise > less noise"
            yield Comparison(compared, f"r = {higher}, {lower}", sides, unit=NATS)

    def high_rate_does_not_fit(self) -> Iterator[Comparison]:
        for rate in RATES["table1"]:
            sides = [self._high_rate_loss(rate), Trials.of_all(settings.noise_entropy(rate))]
            compared = "training loss: before the rate drop > entropy of the noise"
            yield Comparison(compared, f"r = {rate}", sides, unit=NATS)

    def converges_faster(self) -> Iterator[Comparison]:
        soft = self.results.curve("figure4", rule="soft")
        for rule in HARD_RULES:
            hard = self.results.curve("figure4", rule=rule)
            level = phases.end(hard) - Trials.of_all(BOUND)
            sides = [phases.epochs_until(curve, level) for curve in (hard, soft)]
            compared = f"epochs to {BOUND:g} points below the end of hard labels: hard > soft"
            yield Comparison(compared, rule, sides, unit="epochs")

    def better_at_equal_recovery(self) -> Iterator[Comparison]:
        number = partial(self.results.trials, "figure4")
        for rules in ((BEST_HARD_RULE, "soft"), ("soft", BEST_HARD_RULE)):
            both = ((rule, number(rule=rule, accuracy="recovery")) for rule in rules)
            yield replace(loss("situation, label accuracy", "", *both, drop=False), situation=True)
        sides = [number(rule=rule, accuracy="test") for rule in ("soft", BEST_HARD_RULE)]
        yield Comparison(f"test accuracy: soft > {BEST_HARD_RULE}", "", sides)

    def beats(self, table: str, others: Iterable[str], accuracy: str) -> Iterator[Comparison]:
        """The joint method versus others at each noise rate, at the best and at the last epoch."""
        for other, score, rate in product(others, SCORES, RATES[table]):
            sides = [self._cell(table, m, score, accuracy, rate) for m in ("joint", other)]
            compared = f"{ACCURACIES[accuracy]}, {score} epoch: joint > {METHODS[other]}"
            yield Comparison(compared, f"r = {rate}", sides)

    def best_to_last(self, table: str, method: str, drop: bool) -> Iterator[Comparison]:
        """Test accuracy of a method at its best and at its last epoch."""
        for rate in RATES[table]:
            both = ((score, self._cell(table, method, score, "test", rate)) for score in SCORES)
            yield loss("test accuracy", f"r = {rate}", *both, drop=drop)

    def low_rate_fits_noise(self) -> Iterator[Comparison]:
        for rate in RATES["table1"]:
            keys = {"logged": "accuracy/noisy", "method": "cross_entropy", "noise_rate": rate}
            predicted = self.results.curve("table1", **keys)
            sides = phases.rises_at_drop(predicted, self.results.schedule("second_step"))
            compared = "rise of noisy labels predicted: across the rate drop > before"
            yield Comparison(compared, f"r = {rate}", sides)

    def _gain(self, rate: float) -> Trials:
        """Our last test accuracy minus the best score of the best other method."""
        ours = self._cell("table2", "joint", LAST, "test", rate)
        theirs = [self._cell("table2", method, BEST, "test", rate) for method in METHODS]
        if not all(cell.finished for cell in theirs):
            return Trials({})  # which one is the best is not known yet
        return ours - max(theirs, key=lambda cell: cell.mean)

    def gains_least(self) -> Iterator[Comparison]:
        hardest = settings.LEAST_GAIN_NOISE_RATE
        for rate in RATES["table2"]:
            if rate != hardest:
                sides = [self._gain(rate), self._gain(hardest)]
                compared = f"gain over the best other method: less noise > r = {hardest}"
                yield Comparison(compared, f"r = {rate}", sides)

    def exchanged_classes(self) -> Iterator[Comparison]:
        *_, lower, rate = RATES["table2"]
        right = partial(self.results.trials, "exchanged_classes")
        pets, other = (partial(right, classes=classes) for classes in ("exchanged", "other"))
        sides = [other(noise_rate=rate), pets(noise_rate=rate)]
        yield Comparison("label accuracy: other classes > cat and dog", f"r = {rate}", sides)
        losses = [of(noise_rate=lower) - of(noise_rate=rate) for of in (pets, other)]
        compared = "loss of label accuracy: cat and dog > other classes"
        yield Comparison(compared, f"r = {lower} to {rate}", losses)

    def _right(self, labels: str, stage: str = "initial") -> Trials:
        return self.results.trials("label_accuracy", labels=labels, stage=stage)

    def _loss(self, labels: str, stage: str = "initial", loss: str = "cross_entropy") -> Trials:
        curves = self.results.curve("figure6", labels=labels, stage=stage, logged=loss)
        return phases.before_drop(curves, self.results.schedule("second_step"))

    def pseudo_loss_is_lower(self) -> Iterator[Comparison]:
        names, both = f"{LABELS[LESS_NOISY]} > pseudo labels", (LESS_NOISY, "pseudo")
        compared, right = (
            f"situation, label accuracy: {names}",
            [self._right(each) for each in both],
        )
        yield Comparison(compared, "", right, situation=True)
        compared = f"training loss before the rate drop: {names}"
        yield Comparison(compared, "", [self._loss(each) for each in both], unit=NATS)

    def pseudo_is_corrected_less(self) -> Iterator[Comparison]:
        for labels in (LESS_NOISY, NOISIER):
            both = (labels, "pseudo")
            sides = [self._right(each, "updated") - self._right(each) for each in both]
            compared = "gain of label accuracy: symmetric noise > pseudo labels"
            yield Comparison(compared, LABELS[labels], sides)

    def _tested(self, phase: str, *sides: tuple[str, str]) -> list[Trials]:
        """Test accuracies of Figure 5 at a phase of the curves, each by its labels and stage."""
        curve = partial(self.results.curve, "figure5")
        return [PHASES[phase](curve(labels=labels, stage=stage)) for labels, stage in sides]

    def pseudo_accuracy_is_lower(self, stage: str) -> Iterator[Comparison]:
        compared = f"situation, label accuracy: pseudo labels > {LABELS[NOISIER]}"
        right = [self._right(labels) for labels in ("pseudo", NOISIER)]
        yield Comparison(compared, "", right, situation=True)
        for phase in PHASES:
            sides = self._tested(phase, (NOISIER, stage), ("pseudo", stage))
            compared = f"test accuracy, {phase}: {LABELS[NOISIER]} > pseudo labels"
            yield Comparison(compared, f"{stage} labels", sides)

    def follows_the_truth(self) -> Iterator[Comparison]:
        truth, stages = self._loss("ground_truth"), ("initial", "updated")
        for (logged, name), labels in product(LOSSES.items(), LABELS):
            sides = [abs(self._loss(labels, stage, logged) - truth) for stage in stages]
            compared = f"distance to the {name} of true labels: initial > updated labels"
            yield Comparison(compared, LABELS[labels], sides, unit=NATS)

    def truth_is_better(self) -> Iterator[Comparison]:
        for phase, (labels, at) in product(PHASES, LABELS.items()):
            sides = self._tested(phase, ("ground_truth", "initial"), (labels, "updated"))
            yield Comparison(f"test accuracy, {phase}: true labels > updated labels", at, sides)

    def beats_quoted_forward(self) -> Iterator[Comparison]:
        quoted = Trials.of_all(tables.TABLE3.cells["forward", "quoted"])
        for score in SCORES:
            ours = self.results.trials("table3", method="joint", score=score, accuracy="test")
            compared = "test accuracy: joint > Forward as quoted"
            yield Comparison(compared, f"{score} epoch", [ours, quoted])

    def _value(self, table: SensitivityTable, parameter: str, value: float) -> Trials:
        return self.results.trials(f"table{table.number}", parameter=parameter, value=value)

    def wants_high_rate(self) -> Iterator[Comparison]:
        noisier, cleaner = both = (tables.TABLE8, tables.TABLE9)
        low, high = COMMON_RATES
        of = partial(self._value, parameter="learning_rate")
        sides = [of(table, value=high) - of(table, value=low) for table in both]
        rates = f"r = {noisier.noise_rate} > r = {cleaner.noise_rate}"
        yield Comparison(f"gain from lr {low} to {high}: {rates}", "", sides)

    def other_values_do_well(self, table: SensitivityTable) -> Iterator[Comparison]:
        """The values at which the paper loses at most `BOUND` points versus the chosen value."""
        for (parameter, value), accuracy in table.cells.items():
            chosen = table.chosen[parameter]
            if value != chosen and table.cells[parameter, chosen] - accuracy <= BOUND:
                before = (f"chosen {chosen}", self._value(table, parameter, chosen))
                after = ("other value", self._value(table, parameter, value))
                yield loss(parameter.replace("_", " "), str(value), before, after, drop=False)

    def updates_start(self, table: SensitivityTable) -> Iterator[Comparison]:
        chosen = table.chosen["start_epoch"]
        for epoch in table.keys("value", parameter="start_epoch"):
            before, after = (self._value(table, "start_epoch", e) for e in (chosen, epoch))
            other = "another start" if epoch else "start at 0"  # before accuracy is high
            both = ((f"start at {chosen}", before), (other, after))
            if epoch != chosen:
                yield loss("validation accuracy", str(epoch), *both, drop=epoch == 0)

    def updates_stop(self, table: SensitivityTable) -> Iterator[Comparison]:
        earliest, *epochs = table.keys("value", parameter="stop_epoch")
        for epoch in epochs:
            before, after = (self._value(table, "stop_epoch", e) for e in (earliest, epoch))
            both = ((f"stop at {earliest}", before), ("later stop", after))
            yield loss("validation accuracy", str(epoch), *both, drop=False)

    def labels_by_probability(self, place: int, wrong: bool) -> Iterator[Comparison]:
        """Labels in a range of Tables 12 and 13: almost all correct, or most of them wrong."""
        claimed = "wrong > correct" if wrong else f"correct > {ALMOST_ALL:g}"
        for table in (tables.TABLE12, tables.TABLE13):
            name = table.keys("range")[place]
            right = self.results.trials(f"table{table.number}", quantity="accuracy", range=name)
            limit = Trials.of_all(ALMOST_ALL)
            sides = [Trials.of_all(100) - right, right] if wrong else [right, limit]
            yield Comparison(f"labels with p in {name}: {claimed}", f"Table {table.number}", sides)
