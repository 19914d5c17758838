"""Figure 4 and its numbers in the text: soft versus hard labels; Tables 12 and 13."""

import itertools
from collections.abc import Iterator
from functools import partial

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import TIE, Finding
from chainer_jo.reproduction.paper.settings import FIGURE4_BEST_TOP, FIGURE4_TOPS
from chainer_jo.reproduction.paper.tables import TABLE12, TABLE13
from chainer_jo.reproduction.trials import Trials

HARD_RULES = (*(f"top{k}" for k in FIGURE4_TOPS), "all")
BEST_HARD_RULE = f"top{FIGURE4_BEST_TOP}"
NEAR_POINTS = 1.0
"""Percentage points below its end at which a curve counts as converged."""
ALMOST_CORRECT = 95.0
"""Label accuracy (percent) above which labels are called almost correct."""


def _faster(results: Results) -> Iterator[Finding]:
    soft = results.curve("figure4", rule="soft")
    for rule in HARD_RULES:
        hard = results.curve("figure4", rule=rule)
        level = phases.end(hard) - Trials.of_all(NEAR_POINTS)
        compared = f"epochs to {NEAR_POINTS:g} point below the end of {rule}, {rule} versus soft"
        theirs, ours = (phases.epochs_until(curve, level) for curve in (hard, soft))
        yield Finding(compared, theirs, ours, unit="epochs")


def _last(results: Results, rule: str, accuracy: str) -> Trials:
    return results.trials("figure4", rule=rule, accuracy=accuracy)


def _better(results: Results, rule: str, accuracy: str) -> Iterator[Finding]:
    """A rule versus every other rule of hard labels."""
    name = {"test": "test", "recovery": "label accuracy"}[accuracy]
    for other in HARD_RULES:
        if other != rule:
            sides = _last(results, rule, accuracy), _last(results, other, accuracy)
            yield Finding(f"{name}, {rule} versus {other}", *sides, ties=True)


def _better_at_equal_recovery(results: Results) -> Iterator[Finding]:
    soft, hard = (_last(results, rule, "recovery") for rule in ("soft", BEST_HARD_RULE))
    compared = f"less than {TIE:g} point apart in label accuracy"
    for a, b, names in (
        (soft, hard, f"soft versus {BEST_HARD_RULE}"),
        (hard, soft, f"{BEST_HARD_RULE} versus soft"),
    ):
        yield Finding(f"{compared}, {names}", a, b, by=-TIE, premise=True)
    soft, hard = (_last(results, rule, "test") for rule in ("soft", BEST_HARD_RULE))
    yield Finding(f"test, soft versus {BEST_HARD_RULE}", soft, hard, ties=True)


def _by_range(results: Results) -> Iterator[tuple[str, dict[str, Trials]]]:
    for table in (TABLE12, TABLE13):
        *ranges, _whole = table.keys("range")
        accuracy = partial(results.trials, f"table{table.number}", quantity="accuracy")
        yield f"Table {table.number}", {each: accuracy(range=each) for each in ranges}


def _sure_is_right(results: Results) -> Iterator[Finding]:
    for table, accuracy in _by_range(results):
        surest = next(iter(accuracy))
        compared = f"{table}, p in {surest} versus almost correct"
        yield Finding(compared, accuracy[surest], Trials.of_all(ALMOST_CORRECT))


def _less_sure_is_less_right(results: Results) -> Iterator[Finding]:
    for table, accuracy in _by_range(results):
        for surer, range_ in itertools.pairwise(accuracy):
            compared = f"{table}, p in {surer} versus {range_}"
            yield Finding(compared, accuracy[surer], accuracy[range_], ties=True)


CLAIMS = [
    Claim(
        "soft-converges-faster",
        "Section 5.4",
        "Soft labels converge faster than every kind of hard labels.",
        "Epochs until a method is within "
        f"{NEAR_POINTS:g} point of the last label accuracy of a hard-label method: fewer for "
        "soft labels than for the hard-label method.",
        _faster,
        ("figure4",),
    ),
    Claim(
        "soft-recovers-better",
        "Section 5.4",
        "Soft labels end with a better label accuracy than every kind of hard labels.",
        "Label accuracy at the end, soft labels versus every hard-label method.",
        partial(_better, rule="soft", accuracy="recovery"),
        ("figure4",),
    ),
    Claim(
        "top-500-is-best",
        "Section 5.4",
        "The best hard-label method updates 500 labels an epoch.",
        "Test accuracy of the second step, top 500 versus every other hard-label method.",
        partial(_better, rule=BEST_HARD_RULE, accuracy="test"),
        ("figure4",),
        own_images=True,
    ),
    Claim(
        "soft-tests-better",
        "Section 4.1",
        "Soft labels perform better than hard labels.",
        "Test accuracy of the second step, soft labels versus every hard-label method.",
        partial(_better, rule="soft", accuracy="test"),
        ("figure4",),
    ),
    Claim(
        "soft-tests-better-at-equal-recovery",
        "Section 5.4",
        "Soft labels give a better test accuracy than hard labels of about the same label "
        "accuracy: their probabilities carry information.",
        f"Soft labels versus top 500: the last label accuracies are less than {TIE:g} point "
        "apart, yet the test accuracy of the second step is higher.",
        _better_at_equal_recovery,
        ("figure4",),
    ),
    Claim(
        "sure-labels-are-right",
        "Appendix C",
        "Labels with a high probability are nearly all correct.",
        f"More than {ALMOST_CORRECT:g} % of the labels with a maximum probability above 0.99 are "
        "correct.",
        _sure_is_right,
        ("table12", "table13"),
    ),
    Claim(
        "less-sure-labels-are-less-right",
        "Appendix C",
        "Labels with a high probability seem to be updated correctly, labels with a low one "
        "incorrectly.",
        "Label accuracy by range of the maximum probability, each range versus the next lower "
        "range.",
        _less_sure_is_less_right,
        ("table12", "table13"),
    ),
]
