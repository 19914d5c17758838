"""Rows and columns of numbers and words as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainer_jo.text import aligned


@dataclass(frozen=True)
class Number:
    """A number as it is printed: ``mean``, ``spread``, the ``state`` of its trials, and ``paper``,
    the number that the paper prints there; bold if it is the ``best``, or was in the paper."""

    mean: str = ""
    spread: str = ""
    state: str = ""
    best: bool = False
    paper: str = ""
    paper_bold: bool = False

    def __str__(self) -> str:
        """``91.2 ± 0.3``; ``…`` marks what is unfinished, ``diverged`` what ended so, ``–`` where
        there was nothing to count. Fewer trials than planned are counted."""
        return " ".join(filter(None, (self.mean, self.spread, self.state)))


Entry = Number | str


@dataclass(frozen=True)
class Grid:
    """A table.

    Parameters
    ----------
    headers : of the columns.
    rows : the label and the entries of every row.
    title : what this table of several shows.
    groups : headings above the columns, each with the number of columns that it spans.
    marked : headers that are marked.
    corner : header of the labels.
    """

    headers: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Entry]]]
    title: str = ""
    groups: Sequence[tuple[str, int]] = ()
    marked: Sequence[str] = ()
    corner: str = ""

    def markdown(self) -> list[str]:
        """The lines; a group's name stands before the headers of its columns."""
        groups = [name for name, span in self.groups for _ in range(span)]
        headers = [f"**{h}**" if h in self.marked else h for h in self.headers]
        if groups:
            headers = [f"{g} {h}".strip() for g, h in zip(groups, headers, strict=True)]
        shown = [[label, *map(_markdown, entries)] for label, entries in self.rows]
        title = [f"*{self.title}*", ""] if self.title else []
        return [*title, *aligned([[self.corner, *headers], *shown]), ""]


def _markdown(entry: Entry) -> str:
    """The number, bold if it is the best, and [the paper's], bold where that is."""
    if isinstance(entry, str):
        return entry
    text = f"**{entry}**" if entry.best else str(entry)
    paper = f"**{entry.paper}**" if entry.paper_bold else entry.paper
    return f"{text} [{paper}]" if entry.paper else text
