"""Agreement of results with a reference: every cell against the scatter over trials.

Chips, engines and precisions round differently, and training amplifies the differences, so a cell
is never bit-identical on another machine. A cell agrees if it could be another draw of the trials.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.trials import Scatter, Trials, limit, typical_variance, weighted_mean

#: Probability that a faithful repetition is reported to differ, for any number of cells. With fewer
#: than three trials on a side it is higher, because typical scatter is lent to cells of more.
ERROR_RATE = 0.01

WITHIN, DIFFERS = "within scatter", "differs"
UNFINISHED, NO_REFERENCE, TOO_FEW = "not finished here", "no reference", "too few trials"
VERDICTS = (WITHIN, DIFFERS, TOO_FEW, UNFINISHED, NO_REFERENCE)
MEAN = "mean of all cells"

_UNKNOWN_SEEDS = itertools.count(-1, -1)


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def scatter(self) -> Scatter:
        return Scatter.of(self.here, self.reference)

    @property
    def comparable(self) -> bool:
        """True if both sides have a number, and there are trials enough for a variance."""
        return bool(self.here.finished and self.reference.finished) and self.scatter.degrees > 0

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
    """A verdict on every pair: Student's t test of the difference of means, Bonferroni-corrected
    for the number of cells. The variance of a cell with few trials is drawn towards the typical
    variance of all cells.

    Raises UserError if nothing can be compared.
    """
    scatters = {pair: pair.scatter for pair in pairs if pair.comparable}
    if not scatters:
        raise UserError(
            "nothing to compare: expected a cell with a finished trial on both sides and two on "
            "one of them"
        )
    for unit in {pair.unit for pair in scatters}:
        of_unit = {pair: scatter for pair, scatter in scatters.items() if pair.unit == unit}
        typical = typical_variance(list(of_unit.values()))
        scatters |= {pair: scatter.shrunk(typical) for pair, scatter in of_unit.items()}
    for table in dict.fromkeys(pair.table for pair in scatters):
        # Means over many cells are steadier than any of these, and stand alone.
        if mean := _mean({p: s for p, s in scatters.items() if p.table == table}):
            scatters[mean] = mean.scatter
    comparisons = [_without_numbers(pair) for pair in pairs if not pair.comparable]
    for pair, scatter in scatters.items():
        most = limit(scatter, pair.here, pair.reference, ERROR_RATE / len(scatters))
        # Sums of the same numbers in another order differ in the last bit.
        apart = abs(pair.difference) > max(most, 1e-9)
        comparisons.append(Comparison(pair, DIFFERS if apart else WITHIN, most))
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


def _mean(scatters: dict[Pair, Scatter]) -> Pair | None:
    """An additional cell: the mean, trial by trial, of a table's cells in percent. It detects a
    common shift that is hidden in the scatter of each cell."""
    usable = [pair for pair in scatters if pair.unit == "percent"]
    for side in ("here", "reference"):
        most = max((len(getattr(p, side).finished) for p in usable), default=0)
        usable = [p for p in usable if len(getattr(p, side).finished) == most]
    used = [scatters[pair] for pair in usable]
    if len(usable) < 2 or not all(scatter.variance for scatter in used):
        return None
    here, reference = (
        weighted_mean([getattr(p, side) for p in usable], used) for side in ("here", "reference")
    )
    return Pair(usable[0].table, MEAN, MEAN, here, reference)
