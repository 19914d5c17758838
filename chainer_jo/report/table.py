"""Tables in the paper's layout, written as Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.report.cells import Cell, Value, best_of
from chainer_jo.report.layout import aligned, escape


@dataclass(frozen=True)
class Block:
    """A grid of cells: a header for every column, labels for every row; ``None`` where there is no
    cell.

    ``groups`` are headings above the columns, each with the number of columns that it spans;
    ``best``: of what the best cells are bold, "column", "row" or nothing; ``marked``: headers of
    columns that the paper prints in bold.
    """

    headers: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    title: str = ""
    groups: Sequence[tuple[str, int]] = ()
    best: str = ""
    marked: Sequence[str] = ()

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cells in self.rows for cell in cells if cell]

    def grid(
        self, store: RunStore, show: Callable[[Cell, bool], str]
    ) -> list[tuple[str, list[str]]]:
        """Label and cells of every row, as ``show`` writes a cell that is, or is not, the best."""
        best = {id(cell) for cell in self.best_cells(store)}
        return [
            (label, [show(cell, id(cell) in best) if cell else "" for cell in cells])
            for label, cells in self.rows
        ]

    def best_cells(self, store: RunStore) -> list[Cell]:
        """The best of every column or row, as ``best`` says."""
        rows = [cells for _, cells in self.rows]
        lines = {"column": zip(*rows, strict=True), "row": rows, "": ()}[self.best]
        return [cell for line in lines for cell in best_of([c for c in line if c], store)]


@dataclass(frozen=True)
class Table:
    """A table of the paper, to be filled from a store.

    Parameters
    ----------
    number : as in the paper.
    caption : what it shows, and of which images.
    blocks : the grids it consists of.
    note : what a reader of these numbers has to know besides preset and data set.
    """

    number: int
    caption: str
    blocks: Sequence[Block]
    note: str = ""

    missing = ""

    @property
    def name(self) -> str:
        return f"table{self.number}"

    @property
    def experiments(self) -> list[Experiment]:
        """Every run it needs, each once, in reading order."""
        cells = (cell for block in self.blocks for cell in block.cells)
        return list(dict.fromkeys(e for cell in cells for e in cell.experiments))

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes ``table<number>.{md,csv,tex,json}`` from the runs that have finished; returns
        their paths."""
        path = folder / self.name
        texts = {
            "md": self._markdown(store, origin),
            "csv": self._csv(store, origin),
            "tex": self._latex(store, origin),
        }
        for suffix, text in texts.items():
            files.write_text(path.with_suffix(f".{suffix}"), text)
        files.write_json(path.with_suffix(".json"), self._json(store, origin))
        return [path.with_suffix(f".{suffix}") for suffix in (*texts, "json")]

    def text(self, store: RunStore, origin: dict) -> str:
        """As Markdown, for the terminal too."""
        return self._markdown(store, origin)

    def _json(self, store: RunStore, origin: dict) -> dict:
        cells, complete = [], True
        for block in self.blocks:
            for cell in block.cells:
                value = cell.value(store)
                complete &= value.complete
                cells.append(
                    {
                        "row": dict(cell.row),
                        "column": dict(cell.column),
                        "paper": cell.paper,
                        "mean": value.mean,
                        "std": value.std,
                        "trials": list(value.trials),
                        "diverged": value.diverged,
                        "runs": [e.id for e in cell.experiments],
                    }
                )
        return {
            "table": self.number,
            **origin,
            "complete": complete,
            "caption": self.caption,
            "cells": cells,
        }

    def _markdown(self, store: RunStore, origin: dict) -> str:
        lines = [
            f"**Table {self.number}.** {self.caption}",
            "",
            self._origin_line(store, origin),
            "",
        ]
        for block in self.blocks:
            if block.title:
                lines += [f"*{block.title}*", ""]
            spread = [name for name, span in block.groups for name in [name] * span] or [""] * len(
                block.headers
            )
            shown = [f"**{h}**" if h in block.marked else h for h in block.headers]
            headers = [
                f"{group} {header}".strip() for group, header in zip(spread, shown, strict=True)
            ]
            grid = block.grid(store, lambda cell, best: cell.markdown(store, best))
            lines += aligned([["", *headers], *([label, *cells] for label, cells in grid)])
            lines.append("")
        return "\n".join(lines)

    def _csv(self, store: RunStore, origin: dict) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["preset", "data", *self._keys, "paper", "mean", "std", "trials", "planned"]
        )
        for block in self.blocks:
            for cell in block.cells:
                value, keys = cell.value(store), {**cell.row, **cell.column}
                writer.writerow(
                    [
                        origin["preset"],
                        origin["data"],
                        *(keys.get(key, "") for key in self._keys),
                        cell.paper,
                        value.mean,
                        value.std,
                        len(value.trials),
                        value.planned,
                    ]
                )
        return out.getvalue()

    @property
    def _keys(self) -> list[str]:
        cells = (cell for block in self.blocks for cell in block.cells)
        return list(dict.fromkeys(key for cell in cells for key in (*cell.row, *cell.column)))

    def _latex(self, store: RunStore, origin: dict) -> str:
        def bold(text: str, is_bold: bool) -> str:
            return rf"\textbf{{{text}}}" if is_bold else text

        def show(cell: Cell, best: bool) -> str:
            text = bold(escape(cell.value(store).text(digits=cell.digits)), best)
            if cell.paper is None:
                return text
            return f"{text} [{bold(f'{cell.paper:.{cell.digits}f}', cell.paper_bold)}]"

        lines = [
            r"\begin{table}",
            rf"\caption{{{escape(self.caption)} {escape(self._origin_line(store, origin))}}}",
        ]
        for block in self.blocks:
            if block.title:
                lines.append(rf"\par {escape(block.title)}\par")
            lines.append(rf"\begin{{tabular}}{{l{'c' * len(block.headers)}}}\hline")
            if block.groups:
                lines.append(
                    " & ".join(
                        [
                            "",
                            *(
                                rf"\multicolumn{{{span}}}{{c}}{{{escape(name)}}}"
                                for name, span in block.groups
                            ),
                        ]
                    )
                    + r"\\"
                )
            headers = [bold(escape(header), header in block.marked) for header in block.headers]
            lines.append(" & ".join(["", *headers]) + r"\\ \hline")
            lines += [
                " & ".join([escape(label), *cells]) + r"\\"
                for label, cells in block.grid(store, show)
            ]
            lines += [r"\hline", r"\end{tabular}"]
        return "\n".join([*lines, r"\end{table}", ""])

    def _origin_line(self, store: RunStore, origin: dict) -> str:
        """What the numbers are of, and what their signs mean."""
        cells = [cell for block in self.blocks for cell in block.cells]
        values = [cell.value(store) for cell in cells if cell.experiments]
        parts = [_trials(values)]
        if any(value.done for value in values) and not all(value.complete for value in values):
            parts.append("…: still to be run")
        if any(cell.paper is not None for cell in cells):
            parts.append("[the paper's number]")
        best = next((block.best for block in self.blocks if block.best_cells(store)), "")
        if best:
            several = any(len(cell.value(store).trials) > 1 for cell in cells)
            parts.append(
                f"bold: the best of its {best}, and what trials cannot tell from it"
                if several
                else f"bold: the highest of its {best}, which one trial cannot tell from the others"
            )
        line = f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}"
        return f"{line}; {', '.join(parts)}. {self.note}".strip()


def _trials(values: Sequence[Value]) -> str:
    """What the numbers are over."""
    done = {len(value.trials) for value in values}
    most = max(done, default=0)
    if not most:
        return "no trial has finished yet"
    if most == 1:
        return "one trial" if len(done) == 1 else "at most one trial of each"
    each = f"mean ± standard deviation over {most} trials"
    return each if len(done) == 1 else f"{each} where nothing else is said"
