"""Error rates of the rule for claims, from simulated results under true null hypotheses.

    python benchmarks/claim_errors.py [--repeats N]

Every setting of a simulated claim has the same true accuracy, so support and refutation are chance:
at most 2.5 % each are allowed. Settings scatter by 1 point between trials; all settings of a trial
share a scatter of 2 points, as runs of one seed do. The column "one for itself" is the rate if
every comparison of a claim decided alone. The second table simulates accuracies that truly lose 2
points (the margin) and shows how often they pass as kept. The third table simulates claims with one
truly wrong comparison (by 20 points) and shows how often they hold in part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from chainer_jo.reproduction.claims.claim import DOES_NOT_HOLD, HOLDS, IN_PART, Verdict  # noqa: E402
from chainer_jo.reproduction.claims.decision import (  # noqa: E402
    NOTABLE,
    REFUTES,
    SUPPORTS,
    Finding,
    holm_outcomes,
    not_inferior,
)
from chainer_jo.reproduction.trials import Trials  # noqa: E402
from chainer_jo.text import aligned  # noqa: E402

SHARED, OWN = 2.0, 1.0
"""Standard deviations over trials, in points: of what runs of one seed share, and of the rest."""
IMAGES = 360
"""Accuracies are counted in so many images, where they are counted."""
WRONG = 20.0
"""Points by which one comparison of a claim is truly wrong, where one is."""


def pairs(comparisons: int) -> list[tuple[int, int]]:
    """Settings compared: two for each comparison, as a method with another at every noise rate."""
    return [(2 * k, 2 * k + 1) for k in range(comparisons)]


def one_with_all(comparisons: int) -> list[tuple[int, int]]:
    """Settings compared: one with each other one, as a chosen value with those beside it."""
    return [(0, k + 1) for k in range(comparisons)]


def chain(comparisons: int) -> list[tuple[int, int]]:
    """Settings compared: each with the next, as one noise rate with the next higher one."""
    return [(k, k + 1) for k in range(comparisons)]


Compared = Callable[[int], list[tuple[int, int]]]


def findings(
    random: np.random.Generator,
    compared: Sequence[tuple[int, int]],
    trials: int,
    loss: float = 0.0,
    counted: bool = False,
    rule: Callable[..., Finding] = Finding,
) -> list[Finding]:
    """The comparisons of one claim, simulated; the first of each pair truly loses ``loss``."""
    settings = 1 + max(max(pair) for pair in compared)
    numbers = 80 + random.normal(0, SHARED, (trials, 1)) + random.normal(0, OWN, (trials, settings))
    for first in {first for first, _ in compared} if loss else ():
        numbers[:, first] -= loss
    if counted:
        numbers = np.round(numbers * IMAGES / 100) * 100 / IMAGES
    estimates = [Trials(dict(enumerate(column))) for column in numbers.T.tolist()]
    return [rule(f"{a} against {b}", estimates[a], estimates[b]) for a, b in compared]


def error_rates(
    compared: Compared, comparisons: int, trials: int, repeats: int, counted: bool = False
) -> dict[str, float]:
    """Shares of simulated claims that are refuted, that hold, and that one comparison for itself
    would refute."""
    random = np.random.default_rng([comparisons, trials, counted])
    counts = dict.fromkeys(("refuted", "holds", "one for itself"), 0)
    for _ in range(repeats):
        simulated = findings(random, compared(comparisons), trials, counted=counted)
        verdict = Verdict(simulated, holm_outcomes(simulated)).verdict
        counts["refuted"] += verdict in (DOES_NOT_HOLD, IN_PART)
        counts["holds"] += verdict == HOLDS
        counts["one for itself"] += any(finding.outcome == REFUTES for finding in simulated)
    return {name: count / repeats for name, count in counts.items()}


def kept_at_the_margin(trials: int, repeats: int) -> float:
    """The share of accuracies that truly lose `NOTABLE` points and pass as kept."""
    random = np.random.default_rng(trials)
    simulated = (
        findings(random, [(0, 1)], trials, loss=NOTABLE, rule=not_inferior)[0]
        for _ in range(repeats)
    )
    return sum(finding.outcome == SUPPORTS for finding in simulated) / repeats


def in_part_by_chance(compared: Compared, comparisons: int, trials: int, repeats: int) -> float:
    """The share of claims with one comparison truly wrong, and no other truly right, that hold in
    part."""
    random = np.random.default_rng([comparisons, trials])
    pairs_of_settings = compared(comparisons)
    count = 0
    for _ in range(repeats):
        simulated = findings(random, pairs_of_settings, trials)
        simulated[0] = replace(simulated[0], a=simulated[0].a - Trials.of_all(WRONG))
        count += Verdict(simulated, holm_outcomes(simulated)).verdict == IN_PART
    return count / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10_000)
    repeats = parser.parse_args().repeats
    rows = [["compared", "comparisons", "trials", "refuted", "holds", "one for itself"]]
    for name, compared in (("pairs", pairs), ("one with all", one_with_all), ("chain", chain)):
        for comparisons in (1, 5, 10, 18):
            for trials in (2, 3, 6):
                rates = error_rates(compared, comparisons, trials, repeats)
                shown = [f"{100 * rate:.1f} %" for rate in rates.values()]
                rows.append([name, str(comparisons), str(trials), *shown])
    for trials in (2, 3, 6):
        rates = error_rates(pairs, 5, trials, repeats, counted=True)
        shown = [f"{100 * rate:.1f} %" for rate in rates.values()]
        rows.append([f"pairs, counted in {IMAGES} images", "5", str(trials), *shown])
    print(
        f"{repeats} simulated claims in each row, all settings of them equally accurate: the\n"
        "shares that are refuted, that hold, and that would be refuted if each comparison\n"
        "decided for itself. 2.5 % are allowed.\n",
        *aligned(rows),
        "",
        sep="\n",
    )
    kept = [[str(n), f"{100 * kept_at_the_margin(n, repeats):.1f} %"] for n in (2, 3, 6)]
    print(*aligned([["trials", f"a loss of {NOTABLE:g} points passes as kept"], *kept]), sep="\n")
    rows = [["compared", "comparisons", "trials", "holds in part, one comparison truly wrong"]]
    for name, compared in (("pairs", pairs), ("one with all", one_with_all), ("chain", chain)):
        for comparisons in (3, 5, 10):
            share = in_part_by_chance(compared, comparisons, 6, repeats)
            rows.append([name, str(comparisons), "6", f"{100 * share:.1f} %"])
    print("", *aligned(rows), sep="\n")


if __name__ == "__main__":
    main()
