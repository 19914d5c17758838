"""Agreement of results with a reference: every cell against the scatter over trials.

Chips, engines and precisions round differently, and training amplifies the differences, so a cell
is never bit-identical on another machine. A cell agrees if it could be another draw of the trials.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.trials import Trials

#: Probability that a faithful repetition is reported to differ, for any number of cells.
ERROR_RATE = 0.01
#: The weight of the typical scatter in each cell, in degrees of freedom. Six trials of Tables 1 and
#: 2 on the digits, held against each other, justify one or two: unstable cells scatter six to
#: nine times as far.
TYPICAL_WEIGHT = 2

WITHIN, DIFFERS = "within scatter", "differs"
UNFINISHED, NO_REFERENCE, TOO_FEW = "not finished here", "no reference", "too few trials"
VERDICTS = (WITHIN, DIFFERS, TOO_FEW, UNFINISHED, NO_REFERENCE)
MEAN = "mean of all cells"

_UNKNOWN_SEEDS = itertools.count(-1, -1)


@dataclass(frozen=True)
class Pair:
    """One cell here and in the reference, without numbers if the reference has no such cell. Cells
    of one ``unit`` are compared by a common typical scatter."""

    table: str
    cell: str
    unit: str
    here: Trials
    reference: Trials

    @property
    def difference(self) -> float:
        return self.here.mean - self.reference.mean

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the variance over both sides' trials."""
        return sum(max(0, len(side.finished) - 1) for side in (self.here, self.reference))

    @property
    def squares(self) -> float:
        """Sum over all trials of the squared distance to their side's mean."""
        sides = (self.here.finished, self.reference.finished)
        return sum(float(np.var(numbers)) * len(numbers) for numbers in sides)

    @property
    def comparable(self) -> bool:
        """True if both sides have a number, and there are trials enough for a variance."""
        return bool(self.here.finished and self.reference.finished) and self.degrees > 0

    @property
    def same_numbers(self) -> bool:
        """True if every trial of a seed that both sides have is the same number."""
        here, reference = self.here.numbers, self.reference.numbers
        shared = here.keys() & reference.keys()
        return bool(shared) and all(here[seed] == reference[seed] for seed in shared)


@dataclass(frozen=True)
class Comparison:
    """A pair, its verdict, and the smallest difference that would be noticed."""

    pair: Pair
    verdict: str
    limit: float | None = None


def read_pairs(here: Path, reference: Path) -> list[Pair]:
    """The cells of every table in the folder ``here``, each with the one in ``reference``. Raises
    UserError if there is no table here, no reference at all, or they are of different data."""
    ours, theirs = _tables(here), _tables(reference)
    if not ours:
        raise UserError(f"{here}: no tables, expected the output of the scripts in reproduce/")
    if not theirs:
        raise UserError(f"{reference}: no tables, expected the reference of {here.name}")
    pairs = []
    for number, table in sorted(ours.items()):
        other = theirs.get(number)
        for key in ("preset", "data"):
            if other and other[key] != table[key]:
                raise UserError(
                    f"table {number}: {key} {table[key]} in {here}, {other[key]} in {reference}; "
                    "expected the same"
                )
        cells = _cells(other or {"cells": []})
        for cell in table["cells"]:
            name, quantity = _name(cell), cell["row"].get("quantity")
            unit = "labels" if quantity == "number" else "percent"
            trials, others = read_trials(cell), cells.get(name, Trials({}))
            pairs.append(Pair(f"Table {number}", name, unit, trials, others))
    return pairs


def _tables(folder: Path) -> dict[int, dict]:
    """The tables of cells, by number; Tables 4 and 5 hold no results."""
    tables = {}
    for path in folder.glob("table[0-9]*.json"):
        table = files.read_json(path)
        if "cells" in table:
            with files.expected(path, "what a script in reproduce/ writes"):
                _ = table["preset"], table["data"], _cells(table)
                tables[int(table["table"])] = table
    return tables


def _cells(table: dict) -> dict[str, Trials]:
    return {_name(cell): read_trials(cell) for cell in table["cells"]}


def read_trials(cell: dict) -> Trials:
    """The trials of a cell in a table's JSON. If one is missing, the seeds are unknown, and each
    gets a negative one that no other cell has."""
    numbers = [*map(float, cell["trials"]), *[None] * cell["diverged"]]
    if len(cell["trials"]) < len(cell["runs"]):
        return Trials({next(_UNKNOWN_SEEDS): number for number in numbers})
    seeds = (int(run.rsplit("-s", 1)[1].split("-")[0]) for run in cell["runs"])
    return Trials(dict(zip(seeds, numbers, strict=True)))


def in_words(side: Trials) -> str:
    """``91.2 ± 0.3 (3)``, the number of trials in brackets, and how many diverged."""
    clauses = []
    if side.finished:
        clauses.append(f"{side.rounded(1)} ({len(side.finished)})")
    if side.diverged:
        clauses.append(f"{side.diverged} diverged")
    return " ".join(clauses) or "-"


def _name(cell: dict) -> str:
    """A cell's row and column in words: ``joint last test noise rate 0.5``."""
    return " ".join(
        value if isinstance(value, str) else f"{'' if key == 'value' else key} {value:g}".strip()
        for key, value in {**cell["row"], **cell["column"]}.items()
    ).replace("_", " ")


def compare_pairs(pairs: Sequence[Pair]) -> list[Comparison]:
    """A verdict on every pair.

    Student's t test of the difference of means, Bonferroni-corrected for the number of cells. The
    variance of a cell with few trials is shrunk towards the typical variance of all cells, as in
    the moderated t statistic (Smyth 2004).

    Raises UserError if nothing can be compared.
    """
    compared = [pair for pair in pairs if pair.comparable]
    if not compared:
        raise UserError(
            "nothing to compare: expected a cell with a finished trial on both sides and two on "
            "one of them"
        )
    typical = {
        unit: statistics.median(p.squares / p.degrees for p in compared if p.unit == unit)
        for unit in {pair.unit for pair in compared}
    }
    for table in dict.fromkeys(pair.table for pair in compared):
        compared += _mean([p for p in compared if p.table == table], typical)
    comparisons = [_without_numbers(pair) for pair in pairs if not pair.comparable]
    for pair in compared:
        # Means over many cells are steadier than any of these, and stand alone.
        limit = _limit(pair, typical.get(pair.unit), ERROR_RATE / len(compared))
        # Sums of the same numbers in another order differ in the last bit.
        apart = abs(pair.difference) > max(limit, 1e-9)
        comparisons.append(Comparison(pair, DIFFERS if apart else WITHIN, limit))
    return comparisons


def _without_numbers(pair: Pair) -> Comparison:
    """The verdict where there is nothing to compute with."""
    if not pair.reference.numbers:
        return Comparison(pair, NO_REFERENCE)
    if not pair.here.numbers:
        return Comparison(pair, UNFINISHED)
    if not (pair.here.finished and pair.reference.finished):  # all of a side diverged
        both = pair.here.diverged and pair.reference.diverged
        return Comparison(pair, WITHIN if both else DIFFERS)
    return Comparison(pair, TOO_FEW)


def _limit(pair: Pair, typical: float | None, error_rate: float) -> float:
    """The largest difference that is within scatter."""
    degrees = pair.degrees + (0 if typical is None else TYPICAL_WEIGHT)
    spread = 1 / len(pair.here.finished) + 1 / len(pair.reference.finished)
    quantile = float(stdtrit(degrees, 1 - error_rate / 2))
    return quantile * math.sqrt(_variance(pair, typical) * spread)


def _variance(pair: Pair, typical: float | None) -> float:
    """The variance of one trial, drawn towards the typical one if there is one."""
    if typical is None:
        return pair.squares / pair.degrees
    return (pair.squares + TYPICAL_WEIGHT * typical) / (pair.degrees + TYPICAL_WEIGHT)


def _mean(pairs: Sequence[Pair], typical: dict[str, float]) -> list[Pair]:
    """An additional cell: the mean, trial by trial, of a table's cells in percent. It detects a
    common shift that is hidden in the scatter of each cell. Cells are weighted by the inverse of
    their scatter, so that noisy cells do not dominate."""
    usable = [pair for pair in pairs if pair.unit == "percent"]
    for side in ("here", "reference"):
        most = max((len(getattr(p, side).finished) for p in usable), default=0)
        usable = [p for p in usable if len(getattr(p, side).finished) == most]
    variances = [_variance(p, typical["percent"]) for p in usable]
    if len(usable) < 2 or not all(variances):
        return []
    weights = 1 / np.sqrt(variances)
    sides = (
        np.average([getattr(p, side).finished for p in usable], 0, weights).tolist()
        for side in ("here", "reference")
    )
    return [Pair(usable[0].table, MEAN, MEAN, *(Trials(dict(enumerate(s))) for s in sides))]
