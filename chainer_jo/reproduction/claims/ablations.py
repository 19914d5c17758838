"""Sections 4.2 and 5.2: ablations of the first step."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import NOTABLE, POINTS, Finding
from chainer_jo.reproduction.claims.soft_versus_hard import ALMOST_CORRECT
from chainer_jo.reproduction.paper.tables import TABLE6, TABLE8
from chainer_jo.reproduction.trials import Trials

NOISES = {table.noise: table.noise_rate for table in (TABLE6, TABLE8)}
"""Kind and rate of the noise in the paper's tables of hyper parameters."""


def _right(results: Results, noise: str, removed: str, quantity: str = "last") -> Trials:
    return results.trials("ablations", noise=noise, removed=removed, quantity=quantity)


def _averaging(results: Results) -> Iterator[Finding]:
    for noise in NOISES:
        for which, when in (("first", "after the first update"), ("last", "at the end")):
            with_it, alone = (_right(results, noise, p, which) for p in ("nothing", "averaging"))
            compared = f"{noise}, {when}, averages versus one epoch alone"
            yield Finding(compared, with_it, alone, ties=True)


def _collapses(results: Results) -> Iterator[Finding]:
    limit = Trials.of_all(100 - ALMOST_CORRECT)
    for noise in NOISES:
        others = _right(results, noise, "prior", "except_best_class")
        yield Finding(f"{noise}, {limit.mean:g} % versus label accuracy", limit, others)


def _entropy_raises(results: Results, quantity: str, by: float = 0.0) -> Iterator[Finding]:
    name = {"last": "label accuracy at the end", "above_0.99": "share over 0.99"}[quantity]
    for noise in NOISES:
        with_it, without = (_right(results, noise, p, quantity) for p in ("nothing", "entropy"))
        yield Finding(f"{noise}, {name}, with L_e versus without", with_it, without, by)


def _is_stuck(results: Results) -> Iterator[Finding]:
    limit = Trials.of_all(NOTABLE)
    for noise in NOISES:
        first, last = (_right(results, noise, "both terms", which) for which in ("first", "last"))
        compared = f"{noise}, {limit.mean:g} points versus the change"
        yield Finding(compared, limit, abs(last - first), unit=POINTS)


CLAIMS = [
    Claim(
        "averaging-prevents-wrong-updates",
        "Section 5.2",
        "Averaging a network's predictions over epochs prevents wrong label updates.",
        "Label accuracy after the first update and at the end of the first step: averages of many "
        "epochs versus the last epoch alone.",
        _averaging,
        ("ablations",),
    ),
    Claim(
        "prior-prevents-one-class",
        "Section 4.2",
        "The term L_p is required to keep the labels from collapsing to one class.",
        f"With alpha = 0, label accuracy at the end of the first step is below "
        f"{100 - ALMOST_CORRECT:g} %, over all classes except the best one. (The paper shows that "
        "one class is a minimum of L_c, not that training ends there.)",
        _collapses,
        ("ablations",),
    ),
    Claim(
        "entropy-concentrates-labels",
        "Section 4.2",
        "The term L_e concentrates every soft label on one class.",
        "More labels than with beta = 0 have a probability above 0.99 after the first step.",
        partial(_entropy_raises, quantity="above_0.99"),
        ("ablations",),
    ),
    Claim(
        "entropy-is-required",
        "Section 4.2",
        "Soft labels require the term L_e.",
        "Label accuracy at the end of the first step is higher than with beta = 0.",
        partial(_entropy_raises, quantity="last"),
        ("ablations",),
        bounds=partial(_entropy_raises, quantity="last", by=NOTABLE),
        bounded_check=f"It is more than {NOTABLE:g} points higher.",
    ),
    Claim(
        "without-both-terms-stuck",
        "Section 4.2",
        "With alpha = beta = 0, network and labels stop changing.",
        "Label accuracy changes by less than "
        f"{NOTABLE:g} points between the first update and the end of the first step.",
        _is_stuck,
        ("ablations",),
    ),
]
