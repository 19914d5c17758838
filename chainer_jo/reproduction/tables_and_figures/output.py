"""Base classes of the outputs of scripts: text, data and files."""

from __future__ import annotations

import abc
import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainer_jo import files
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell
from chainer_jo.text import aligned

#: Text, bytes, or what becomes JSON, by the ending of its file.
Contents = Mapping[str, str | bytes | dict | list]


@dataclass(frozen=True)
class Results:
    """A results folder, and the names of preset, data set and precision in what is written."""

    store: RunStore
    preset: str
    data: str
    precision: str

    @property
    def names(self) -> dict[str, str]:
        """The three names, in the order of their columns."""
        return {"preset": self.preset, "data": self.data, "precision": self.precision}

    def __str__(self) -> str:
        return f"Preset {self.preset}, data {self.data}, precision {self.precision}"


class Output(abc.ABC):
    """Output of a script, made from finished runs: a table or figure, or claims. ``missing`` is one
    line if a part cannot be shown because an input is missing, otherwise empty."""

    missing: str = ""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of its files, without endings."""

    @property
    def experiments(self) -> Sequence[Experiment]:
        """All required runs, each once, in reading order."""
        return ()

    @abc.abstractmethod
    def text(self, results: Results) -> str:
        """The content for the terminal."""

    @abc.abstractmethod
    def write(self, results: Results, folder: Path, figures: Path) -> list[Path]:
        """Writes its files to ``folder``, drawings to ``figures``; returns the paths."""

    @abc.abstractmethod
    def data(self, results: Results) -> dict | list:
        """The content of its JSON file."""

    def is_worth_showing(self, store: RunStore) -> bool:
        """False for an output with too few numbers to be shown beside others."""
        return True


class TableOrFigure(Output):
    """A table or figure of the paper: ``kind`` is "table" or "figure", ``number`` the paper's."""

    kind: str
    number: int
    caption: Any  # a string; a field or a property

    @property
    def cells(self) -> Sequence[Cell]:
        """The cells of a table, or of the numbers beside a figure."""
        return ()

    @property
    def experiments(self) -> Sequence[Experiment]:
        return list(dict.fromkeys(run for cell in self.cells for run in cell.experiments))

    def curve(self, keys: Mapping) -> tuple[Sequence[Experiment], str]:
        """The runs of a figure's curve by its `Curve.keys`, and the log entry that it shows."""
        return (), ""

    @property
    def name(self) -> str:
        return f"{self.kind}{self.number}"

    @property
    def title(self) -> str:
        return f"{self.kind.capitalize()} {self.number}"

    def head(self, results: Results, complete: bool) -> dict:
        """The first entries of the JSON file."""
        numbered = {self.kind: self.number, **results.names}
        return {**numbered, "complete": complete, "caption": self.caption}

    @abc.abstractmethod
    def paragraphs(self, results: Results) -> list[str]:
        """The Markdown below the caption: notes, and numbers as `grid` makes them."""

    def text(self, results: Results) -> str:
        """The page as Markdown."""
        below = self.paragraphs(results)
        return "\n\n".join([f"**{self.title}.** {self.caption}", *below]) + "\n"

    @abc.abstractmethod
    def extra_files(self, results: Results) -> Mapping[str, str | bytes]:
        """Files other than Markdown and JSON, by ending: CSV, and a figure's drawing."""

    def write(self, results: Results, folder: Path, figures: Path) -> list[Path]:
        """Writes all files: a figure's `extra_files` to ``figures``, the others to ``folder``."""
        place = folder if self.kind == "table" else figures
        page: Contents = {".md": self.text(results), ".json": self.data(results)}
        return [
            *write_all(place / self.name, self.extra_files(results)),
            *write_all(folder / self.name, page),
        ]


#: Keys that tell the entries of a list apart: cells of tables, curves, claims, comparisons.
IDENTIFYING_KEYS = ("row", "column", "label", "id", "compared", "at")


def trials_by_number(content: Any, where: str = "") -> Counter[str]:
    """Trials behind each number of a JSON file, by the number's place: tables list them by cell,
    figures and claims count them by curve and comparison."""
    counted: Counter[str] = Counter()
    if isinstance(content, list):
        for entry in content:
            names = entry
            if isinstance(entry, dict):
                names = [entry.get(key) for key in IDENTIFYING_KEYS]
            counted += trials_by_number(entry, f"{where}/{json.dumps(names)}")
    elif isinstance(content, dict):
        own = content.get("trials") or 0
        counted[where] = len(own) if isinstance(own, list) else int(own)
        for key, value in content.items():
            if key != "trials":
                counted += trials_by_number(value, f"{where}/{key}")
    return counted


def grid(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with a header for every column."""
    return "\n".join(aligned([list(row) for row in (headers, *rows)]))


def as_csv(rows: Iterable[Sequence]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def write_all(path: Path, contents: Contents) -> list[Path]:
    """Writes files that differ in their endings; returns their paths."""
    by_path = {path.with_name(path.name + end): content for end, content in contents.items()}
    for path, content in by_path.items():
        if isinstance(content, str):
            files.write_text(path, content)
        elif isinstance(content, bytes):
            files.write_bytes(path, content)
        else:
            files.write_json(path, content)
    return list(by_path)
