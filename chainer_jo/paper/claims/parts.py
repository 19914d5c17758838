"""Sections 4.2 and 5.2: parts of the first step, held against runs without them."""

from collections.abc import Iterator

from chainer_jo.paper.claims.claim import Claim, Results
from chainer_jo.paper.claims.decision import NOTABLE, POINTS, Finding, exceeds
from chainer_jo.paper.claims.soft_labels import ALMOST_CORRECT
from chainer_jo.paper.tables import TABLE6, TABLE8
from chainer_jo.paper.trials import Trials

NOISES = {table.noise: table.noise_rate for table in (TABLE6, TABLE8)}
"""Kind and rate of the noise in the paper's tables of hyper parameters."""


def _right(results: Results, noise: str, without: str, quantity: str = "last") -> Trials:
    return results.trials("parts", noise=noise, without=without, quantity=quantity)


def _averaging(results: Results) -> Iterator[Finding]:
    for noise in NOISES:
        for which, when in (("first", "after the first update"), ("last", "at the end")):
            with_it, alone = (_right(results, noise, p, which) for p in ("nothing", "averaging"))
            compared = f"{noise}, {when}, averages against one epoch alone"
            yield exceeds(compared, with_it, alone, ties=True)


def _collapses(results: Results) -> Iterator[Finding]:
    limit = Trials.of_all(100 - ALMOST_CORRECT)
    for noise in NOISES:
        others = _right(results, noise, "prior", "but one")
        yield exceeds(f"{noise}, {limit.mean:g} % against the right labels", limit, others)


def _concentrates(results: Results) -> Iterator[Finding]:
    for noise in NOISES:
        with_it, without = (_right(results, noise, p, "sure") for p in ("nothing", "entropy"))
        yield exceeds(f"{noise}, share over 0.99, with L_e against without", with_it, without)


def _entropy_is_required(results: Results) -> Iterator[Finding]:
    for noise in NOISES:
        with_it, without = (_right(results, noise, p) for p in ("nothing", "entropy"))
        compared = f"{noise}, right labels at the end, with L_e against without"
        yield exceeds(compared, with_it, without, by=NOTABLE)


def _is_stuck(results: Results) -> Iterator[Finding]:
    limit = Trials.of_all(NOTABLE)
    for noise in NOISES:
        first, last = (_right(results, noise, "both terms", which) for which in ("first", "last"))
        compared = f"{noise}, {limit.mean:g} points against the change"
        yield exceeds(compared, limit, abs(last - first), unit=POINTS)


CLAIMS = [
    Claim(
        "averaging-prevents-wrong-updates",
        "Section 5.2",
        "Averaging a network's predictions over epochs keeps labels from being updated wrongly.",
        "Right labels after the first update, and at the end of the first step: averages of many "
        "epochs against the last epoch alone.",
        _averaging,
        ("parts",),
    ),
    Claim(
        "prior-prevents-one-class",
        "Section 4.2",
        "The term L_p is required to keep all labels from ending as one class.",
        f"With alpha = 0, less than {100 - ALMOST_CORRECT:g} % of the labels are right at the end "
        "of the first step, of all classes but the one that most are right of. (The paper shows "
        "that one class is a minimum of L_c, not that training ends there.)",
        _collapses,
        ("parts",),
    ),
    Claim(
        "entropy-concentrates-labels",
        "Section 4.2",
        "The term L_e concentrates the probabilities of every soft label on one class.",
        "More labels have a probability over 0.99 at the end of the first step than with beta = 0.",
        _concentrates,
        ("parts",),
    ),
    Claim(
        "entropy-is-required",
        "Section 4.2",
        "With soft labels the term L_e is required.",
        "At the end of the first step more labels are right than with beta = 0, by more "
        f"than {NOTABLE:g} points.",
        _entropy_is_required,
        ("parts",),
    ),
    Claim(
        "without-both-terms-stuck",
        "Section 4.2",
        "With alpha = beta = 0 network and labels are stuck where they are.",
        "From their first update to the end of the first step the share of right labels changes "
        f"by less than {NOTABLE:g} points.",
        _is_stuck,
        ("parts",),
    ),
]
