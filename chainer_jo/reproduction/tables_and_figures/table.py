"""Tables in the paper's layout, whose cells are means over trials next to the paper's numbers;
written as Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chainer_jo.reproduction.experiments.words import of_the_paper
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell, best_of
from chainer_jo.reproduction.tables_and_figures.output import Results, TableOrFigure, as_csv, grid
from chainer_jo.reproduction.trials import Trials


@dataclass(frozen=True)
class Block:
    """A grid of cells, ``None`` where there is no cell. The best of every ``best`` ("column", "row"
    or nothing) is bold."""

    headers: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    title: str = ""
    best: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cells in self.rows for cell in cells if cell]

    def paragraphs(self, results: Results) -> list[str]:
        """The title, if any, and the numbers of its cells, next to the paper's if the data set is
        the paper's."""
        store, beside = results.store, of_the_paper(results.data)
        best = {id(cell) for cell in self.best_cells(store)}
        rows = []
        for label, cells in self.rows:
            numbers = [c.markdown(store, id(c) in best, beside) if c else "" for c in cells]
            rows.append([label, *numbers])
            if self.best == "row":
                rows += _in_common(label, [cell for cell in cells if cell], store)
        title = [f"*{self.title}*"] if self.title else []
        return [*title, grid(["", *self.headers], rows)]

    def best_cells(self, store: RunStore) -> list[Cell]:
        """The best of every column or row, as ``best`` says."""
        return [cell for line in self.lines(self.best) for cell in best_of(line, store)]

    def lines(self, which: str) -> list[list[Cell]]:
        """The cells of every "column" or "row"."""
        rows = [cells for _, cells in self.rows]
        lines = {"column": zip(*rows, strict=True), "row": rows, "": ()}[which]
        return [[cell for cell in line if cell] for line in lines]


@dataclass(frozen=True)
class Table(TableOrFigure):
    """A table of the paper, to be filled from a store; ``note`` stands below the caption."""

    number: int
    caption: str
    blocks: Sequence[Block]
    note: str = ""

    kind = "table"

    @property
    def cells(self) -> list[Cell]:
        return [cell for block in self.blocks for cell in block.cells]

    def is_worth_showing(self, store: RunStore) -> bool:
        """True if a row or column of several cells is whole; quoted cells do not count."""
        lines = [
            [cell for cell in line if cell.experiments]
            for block in self.blocks
            for direction in ("row", "column")
            for line in block.lines(direction)
        ]
        return any(
            len(line) > 1 and all(cell.trials(store).finished for cell in line) for line in lines
        )

    def paragraphs(self, results: Results) -> list[str]:
        """The setting of the numbers, and the blocks."""
        notes = [self._setting_line(results), *([self.note] if self.note else [])]
        return notes + [p for block in self.blocks for p in block.paragraphs(results)]

    def data(self, results: Results) -> dict:
        """Every cell with its trials."""
        every = [(cell, cell.trials(results.store)) for cell in self.cells]
        cells = [
            {
                "row": cell.row,
                "column": cell.column,
                "paper": cell.paper,
                "mean": ended.mean_or_none,
                "std": ended.std,
                "trials": list(ended.finished),
                "diverged": ended.diverged,
                "runs": [e.id for e in cell.experiments],
            }
            for cell, ended in every
        ]
        return {**self.head(results, all(ended.complete for _, ended in every)), "cells": cells}

    def extra_files(self, results: Results) -> dict[str, str]:
        """One row of CSV per cell."""
        return {".csv": as_csv(self._rows(results))}

    def _rows(self, results: Results) -> Iterator[list]:
        names = list(dict.fromkeys(key for cell in self.cells for key in cell.keys))
        yield ["preset", "data", *names, "paper", "mean", "std", "trials", "planned"]
        for cell in self.cells:
            ended = cell.trials(results.store)
            keys = (cell.keys.get(name, "") for name in names)
            means = cell.paper, ended.mean_or_none, ended.std
            counts = len(ended.finished), ended.planned
            yield [results.preset, results.data, *keys, *means, *counts]

    def _setting_line(self, results: Results) -> str:
        """The note below the caption: preset, data, trials and signs."""
        cells = [cell for cell in self.cells if cell.experiments]
        computed = [cell.trials(results.store) for cell in cells]
        clauses = [_over_trials(computed)]
        unfinished = any("…" in cell.markdown(results.store) for cell in cells)
        if unfinished and any(ended.done for ended in computed):
            clauses.append("…: not run yet")
        if of_the_paper(results.data) and any(cell.paper is not None for cell in self.cells):
            clauses.append("[the paper's number]")
        best = next((block.best for block in self.blocks if block.best_cells(results.store)), "")
        if best:
            clauses.append(f"bold: highest of the {best}")
        return f"{results}; {', '.join(clauses)}."


def _in_common(label: str, cells: list[Cell], store: RunStore) -> list[list[str]]:
    """A row over the trials that all cells share, if some cells have more trials."""
    seeds = [set(numbers) for cell in cells if (numbers := cell.trials(store).numbers)]
    common = set.intersection(*seeds) if seeds else set()
    if not common or all(each == common for each in seeds):
        return []
    trials = f"only trial{'s' * (len(common) > 1)} {', '.join(map(str, sorted(common)))}"
    alone = [replace(c, experiments=[e for e in c.experiments if e.seed in common]) for c in cells]
    return [[f"{label}, {trials}", *(cell.markdown(store) for cell in alone)]]


def _over_trials(computed: Sequence[Trials]) -> str:
    """The number of trials that the numbers are means over."""
    done = {len(ended.finished) for ended in computed}
    most = max(done, default=0)
    if not most:
        return "no trial has finished yet"
    if most == 1:
        planned = max(ended.planned for ended in computed)
        return f"one of {planned} trials" if planned > 1 else "one trial"
    each = f"mean ± standard deviation over {most} trials"
    if len(done) == 1:
        return each
    return f"{each} unless stated" + (", numbers without ± from one trial" if 1 in done else "")
