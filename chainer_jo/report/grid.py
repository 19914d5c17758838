"""Rows and columns of numbers and words as Markdown, LaTeX and HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from chainer_jo.text import aligned

_NUMBER = re.compile(r"(-?[\d.]+)?")


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

    def latex(self) -> list[str]:
        """The lines of one ``tabular`` for each group of columns, scaled to the width of the text
        if it is wider. Columns of words are aligned to the left; below a row stand the paper's
        numbers."""
        ends = list(accumulate(span for _, span in self.groups)) or [len(self.headers)]
        names = [name for name, _ in self.groups] or [""]
        lines = []
        for name, start, end in zip(names, [0, *ends], ends, strict=False):
            title = escape_latex(self.title or name)
            lines += [rf"\par {title}\par"] if title else []
            rows = [(label, entries[start:end]) for label, entries in self.rows]
            rows = [row for row in rows if any(str(entry) or _paper(entry) for entry in row[1])]
            lines += [_FITTED, *self._tabular(self.headers[start:end], rows), "}"]
        return lines

    def _tabular(
        self, headers: Sequence[str], rows: Sequence[tuple[str, Sequence[Entry]]]
    ) -> list[str]:
        columns = zip(*(entries for _, entries in rows), strict=True)
        align = "".join("c" if any(isinstance(e, Number) for e in c) else "l" for c in columns)
        shown = [
            _BOLD.format(escape_latex(h)) if h in self.marked else escape_latex(h)
            for h in (self.corner, *headers)
        ]
        lines = [rf"\begin{{tabular}}{{l{align}}}\hline", _row(shown) + r" \hline"]
        for label, entries in rows:
            lines.append(_row([escape_latex(label), *map(_latex, entries)]))
            papers = [_paper(entry) for entry in entries]
            lines += [_row([r"\quad paper", *papers])] if any(papers) else []
        return [*lines, r"\hline", r"\end{tabular}"]

    def html(self) -> str:
        """A ``<table>`` whose headers say which row or column they are of."""
        rows = [(label, [_number(entry) for entry in entries]) for label, entries in self.rows]
        words = [
            any(map(_is_words, c)) for c in zip(*(entries for _, entries in rows), strict=True)
        ]
        body = "\n".join(
            f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_cell, entries, words))}</tr>'
            for label, entries in rows
        )
        caption = f"<caption>{prose(self.title)}</caption>" if self.title else ""
        head = f"<thead>\n{self._head(words)}\n</thead>"
        return f"<table>{caption}\n{head}\n<tbody>\n{body}\n</tbody></table>"

    def _head(self, words: Sequence[bool]) -> str:
        corner = escape(self.corner) or '<span class="hidden">row</span>'
        grouped = len(self.groups) > 1 and all(span > 1 for _, span in self.groups)
        if grouped:
            over = "".join(
                f'<th scope="colgroup" colspan="{span}">{escape(name)}</th>'
                for name, span in self.groups
            )
            cells = "".join(f'<th scope="col">{escape(header)}</th>' for header in self.headers)
            return f'<tr><th scope="col" rowspan="2">{corner}</th>{over}</tr>\n<tr>{cells}</tr>'
        groups = [f"{name} " for name, span in self.groups for _ in range(span)]
        cells = "".join(
            f'<th scope="col"{_aligned(left)}>'
            + (f"<mark>{escape(h)}</mark>" if h in self.marked else escape(group + h))
            + "</th>"
            for group, h, left in zip(groups or [""] * len(words), self.headers, words, strict=True)
        )
        return f'<tr><th scope="col">{corner}</th>{cells}</tr>'


_BOLD = r"\textbf{{{}}}"
#: Begins a box that is as wide as the text at most.
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def _markdown(entry: Entry) -> str:
    """The number, bold if it is the best, and [the paper's], bold where that is."""
    if isinstance(entry, str):
        return entry
    text = f"**{entry}**" if entry.best else str(entry)
    paper = f"**{entry.paper}**" if entry.paper_bold else entry.paper
    return f"{text} [{paper}]" if entry.paper else text


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r"\\"


def _latex(entry: Entry) -> str:
    text = escape_latex(str(entry))
    return _BOLD.format(text) if isinstance(entry, Number) and entry.best else text


def _paper(entry: Entry) -> str:
    """The paper's number as LaTeX, if there is one."""
    if isinstance(entry, str):
        return ""
    return _BOLD.format(entry.paper) if entry.paper_bold and entry.paper else entry.paper


def _number(entry: Entry) -> Entry:
    """A number that is given as text, as a number."""
    return Number(entry) if isinstance(entry, str) and _NUMBER.fullmatch(entry) else entry


def _is_words(entry: Entry) -> bool:
    return isinstance(entry, str) and not entry[0].isdigit()


def _aligned(left: bool) -> str:
    return ' class="words"' if left else ""


def _cell(entry: Entry, left: bool) -> str:
    """A number with its spread beside it and the paper's below; other text as it is."""
    if left or isinstance(entry, str):
        return f"<td{_aligned(left)}>{escape(str(entry))}</td>"
    mean = f"<b>{entry.mean}</b>" if entry.best else entry.mean
    spread = f' <span class="std">{entry.spread}</span>' if entry.spread else ""
    state = f' <span class="state">{escape(entry.state)}</span>' if entry.state else ""
    paper = f"<b>{entry.paper}</b>" if entry.paper_bold else entry.paper
    if entry.paper:
        paper = f' <span class="paper"><span class="hidden">paper </span>[{paper}]</span>'
    return f'<td><span class="ours">{mean}{spread}{state}</span>{paper}</td>'


_IN_LATEX = str.maketrans({
    **{character: f"\\{character}" for character in "&%#_${}"},
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "±": r"$\pm$", "…": r"\dots{}", "–": "--", "→": r"$\rightarrow$", "×": r"$\times$",
    "α": r"$\alpha$", "β": r"$\beta$",
})  # fmt: skip


def escape_latex(text: str) -> str:
    """Text as LaTeX."""
    return text.translate(_IN_LATEX)


def prose(text: str) -> str:
    """Running text as HTML, with the apostrophe that print has."""
    return escape(text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"))
