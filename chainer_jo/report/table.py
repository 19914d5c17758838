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
from chainer_jo.report.cells import Cell
from chainer_jo.report.layout import aligned, escape


@dataclass(frozen=True)
class Block:
    """A grid of cells: a header for every column, labels for every row; ``None`` where there is no
    cell.

    ``groups`` are headings above the columns, each with the number of columns that it spans.
    """

    headers: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    title: str = ""
    groups: Sequence[tuple[str, int]] = ()

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, cells in self.rows for cell in cells if cell]


@dataclass(frozen=True)
class Table:
    """A table of the paper, to be filled from a store.

    Parameters
    ----------
    number : as in the paper.
    caption : the paper's.
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

    def _grid(self, block: Block, show: Callable[[Cell], str]) -> list[list[str]]:
        return [
            [label, *(show(cell) if cell else "" for cell in cells)] for label, cells in block.rows
        ]

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
            headers = [
                f"{group} {header}".strip()
                for group, header in zip(spread, block.headers, strict=True)
            ]
            lines += aligned(
                [["", *headers], *self._grid(block, lambda cell: cell.markdown(store))]
            )
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
        def show(cell: Cell) -> str:
            text = escape(cell.value(store).text(digits=cell.digits))
            text = rf"\textbf{{{text}}}" if cell.bold else text
            return text if cell.paper is None else rf"{text} [{cell.paper:.{cell.digits}f}]"

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
            lines.append(" & ".join(["", *map(escape, block.headers)]) + r"\\ \hline")
            lines += [
                " & ".join([escape(row[0]), *row[1:]]) + r"\\" for row in self._grid(block, show)
            ]
            lines += [r"\hline", r"\end{tabular}"]
        return "\n".join([*lines, r"\end{table}", ""])

    def _origin_line(self, store: RunStore, origin: dict) -> str:
        cells = [cell for block in self.blocks for cell in block.cells if cell.experiments]
        counts = {len(cell.value(store).trials) for cell in cells} or {0}
        fewest, most = min(counts), max(counts)
        trials = "1 trial" if most == 1 else f"{most} trials"
        line = (
            f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}; "
            f"mean ± standard deviation over {f'{fewest} to ' if fewest < most else ''}{trials}, "
            "[the paper's number], bold where the paper's is."
        )
        return f"{line} {self.note}".strip()
