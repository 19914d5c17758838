"""Results that bear out every claim of the paper, until a test changes a number."""

from zlib import crc32

from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.trials import Trials

#: By the labels that are trained on: how many are right, the test accuracy at its highest, the loss
#: at the high learning rate.
LABELS = {
    ("ground_truth", "initial"): (100.0, 93.5, 0.30),
    ("symmetric_0.3", "initial"): (73.0, 88.0, 1.30),
    ("symmetric_0.5", "initial"): (55.0, 85.0, 1.70),
    ("pseudo", "initial"): (62.5, 64.0, 0.80),
    ("symmetric_0.3", "updated"): (95.0, 91.5, 0.33),
    ("symmetric_0.5", "updated"): (92.0, 89.8, 0.36),
    ("pseudo", "updated"): (63.5, 66.0, 0.35),
}
EXCHANGED_CLASSES = {
    ("exchanged", 0.4): 88.0, ("exchanged", 0.5): 55.0, ("other", 0.4): 97.0, ("other", 0.5): 96.0,
}  # fmt: skip
#: Test and label accuracy at the end, and the part of the training after which it is reached.
FIGURE4 = {
    "soft": (86.0, 86.0, 0.1), "top500": (85.7, 85.8, 0.4), "all": (84.0, 83.0, 0.3),
    "top50": (83.0, 82.0, 0.9), "top5000": (85.0, 85.0, 0.35),
}  # fmt: skip
ABLATIONS = {
    ("nothing", "first"): 72.0, ("nothing", "last"): 86.0, ("averaging", "first"): 68.0,
    ("averaging", "last"): 84.0, ("prior", "except_best_class"): 0.5, ("entropy", "last"): 80.0,
    ("nothing", "above_0.99"): 80.0, ("entropy", "above_0.99"): 1.0,
    ("both terms", "first"): 70.0, ("both terms", "last"): 71.0,
}  # fmt: skip


class MadeUp:
    """`change(kind, keys, number)` gives another number or shape of a curve.

    Curves are drawn through a shape, ``(first, before, after, end)``: the value of the first epoch,
    until the learning rate drops, right after, and at the end. Figure 4's have their own.

    Trials are apart by `scatter` times a factor from 1 to 2 that every number, and every value of a
    shape, has for itself, so that differences scatter as well. Trials of which `has_run(keys,
    trial)` is false are missing, the trials of `diverged` have diverged.
    """

    def __init__(self, change=None, trials=3, scatter=0.01, scale=1.0, has_run=None, diverged=()):
        self.change = change or (lambda kind, keys, number: number)
        self.has_run = has_run or (lambda keys, trial: True)
        self.offsets = {i: scatter * (i - (trials - 1) / 2) for i in range(trials)}
        self.scale, self.diverged = scale, dict.fromkeys(diverged)

    def schedule(self, name):
        epochs = int({"second_step": 120, "figure3": 600}[name] * self.scale)
        return epochs, [epochs // 3, epochs * 2 // 3]

    def trials(self, kind, **keys):
        number = self.change(kind, keys, self._number(kind, keys))
        numbers = self._by_trial(number, kind, keys) | self.diverged
        return Trials({trial: n for trial, n in numbers.items() if self.has_run(keys, trial)})

    def curve(self, kind, logged="", **keys):
        keys |= {"logged": logged}
        shape = self.change(kind, keys, self._shape(kind, keys))
        if kind == "figure4":
            end, part = shape
            ends = self._by_trial(end, kind, keys)
            slower = {trial: 1 + trial / 20 for trial in ends}  # epochs that are equal have no t
            return {t: self._rising(end, part * slower[t]) for t, end in ends.items()}
        schedule = self.schedule("figure3" if kind == "figure3" else "second_step")
        values = [self._by_trial(value, kind, keys, i) for i, value in enumerate(shape)]
        curves = {t: self._dropping(*(v[t] for v in values), *schedule) for t in self.offsets}
        return curves | self.diverged

    def _by_trial(self, number, *names):
        factor = 1 + crc32(repr(names).encode()[::-1]) / 2**32
        return {trial: number + factor * offset for trial, offset in self.offsets.items()}

    def _rising(self, end, part):
        epochs = int(1500 * self.scale)
        return [
            min(end, 37 + (end - 37) * epoch / (part * epochs)) for epoch in range(1, epochs + 1)
        ]

    def _dropping(self, first, before, after, end, epochs, drops):
        falling = epochs - drops[0] - epochs // 20
        steps = [after + (end - after) * min(1.0, i / (0.8 * falling)) for i in range(falling)]
        return [first] + [before] * (drops[0] - 1) + [after] * (epochs // 20) + steps

    def _number(self, kind, keys):
        if kind == "exchanged_classes":
            return EXCHANGED_CLASSES[keys["classes"], keys["noise_rate"]]
        if keys.get("method") == "noisy_labels":
            return 100 * (1 - 0.9 * keys["noise_rate"])
        if kind == "label_accuracy":
            return LABELS[keys["labels"], keys["stage"]][0]
        if kind == "figure4":
            return FIGURE4[keys["rule"]][keys["accuracy"] == "recovery"]
        if kind == "ablations":
            return ABLATIONS[keys["removed"], keys["quantity"]]
        if keys.get("range") == "0.9-0":
            return 40.0  # the paper's own numbers contradict what it says here
        printed = getattr(tables, kind.upper())
        number = printed.cells[tuple(keys[name] for name in printed.names)]
        dropping = keys.get("method") in ("cross_entropy", "forward") and keys["score"] == "last"
        return number - 3 * (dropping and keys.get("noise_rate", 0) > 0)  # here as well

    def _shape(self, kind, keys):
        if kind == "figure2":
            return (40, 80, 80, 79.5) if keys["learning_rate"] == 0.2 else (40, 80, 80, 60)
        if kind == "figure3":
            return (2.3, 0.8 + 2 * keys["noise_rate"], 0.2 + keys["noise_rate"], 0.01)
        if kind == "figure4":
            return FIGURE4[keys["rule"]][1:]
        if kind == "figure5":
            peak = LABELS[keys["labels"], keys["stage"]][1]
            return (30, peak - 10, peak, peak - 1)
        if kind == "figure6":
            return (2.3, LABELS[keys["labels"], keys["stage"]][2], 0.2, 0.01)
        by_log = {"accuracy/noisy": (10, 40, 55, 80), "cross_entropy": (2.3, 1.5, 0.9, 0.3)}
        return by_log.get(keys["logged"], (40, 80, 85, 10))  # cross entropy


def changed(of, to, **where):
    """Another number of the kind `of` where the keys are as given; or curve, if `to` is a shape."""

    def change(kind, keys, old):
        asked = kind == of and all(keys.get(k) == v for k, v in where.items())
        return to if asked and isinstance(old, tuple) == isinstance(to, tuple) else old

    return change
