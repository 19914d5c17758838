"""The Markdown that tables and figures are written in, read back and turned into HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

_CAPTION = re.compile(r"\*\*(\w+ \d+)\.\*\* (.*)")
_TITLE = re.compile(r"\*([^*].*)\*$")
_CELL = re.compile(
    r"(?P<bold>\*\*)?(?P<mean>-?[\d.]+)?(?P<std> ± [\d.]+)?"
    r"(?P<more>( ?\(\d+ of [^)]*\)| ?[…–])*)(?(bold)\*\*)"
    r"( \[(?P<paper_bold>\*\*)?(?P<paper>[\d.]*)(?(paper_bold)\*\*)\])?"
)


def prose(text: str) -> str:
    """Running text as HTML, with the apostrophe that print has."""
    return escape(text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"))


@dataclass(frozen=True)
class Grid:
    """One table: the first row is its header, the first column labels the rows."""

    rows: Sequence[Sequence[str]]
    title: str = ""

    def html(self) -> str:
        """A ``<table>`` whose headers say which row or column they are of."""
        header, *body = self.rows
        left = [False] + [
            any(map(_is_words, column)) for column in list(zip(*body, strict=True))[1:]
        ]
        caption = f"<caption>{prose(self.title)}</caption>" if self.title else ""
        rows = "\n".join(
            f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_cell, cells, left[1:]))}</tr>'
            for label, *cells in body
        )
        head = f"<thead>\n{_head(header, left)}\n</thead>"
        return f"<table>{caption}\n{head}\n<tbody>\n{rows}\n</tbody></table>"


@dataclass(frozen=True)
class Document:
    """What one file says: ``name`` ("Table 1"), caption, notes, its grids, and a list of ``points``
    under a heading."""

    name: str
    caption: str
    notes: Sequence[str]
    grids: Sequence[Grid]
    heading: str = ""
    points: Sequence[str] = ()

    @classmethod
    def read(cls, markdown: str) -> Document:
        """Reads what `Table.text` and its like write."""
        name, caption, title, notes, grids, points = "", "", "", [], [], []
        for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("|")):
            lines = [line.strip() for line in group if line.strip()]
            if is_table:
                rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
                grids.append(Grid([rows[0], *rows[2:]], title))
                title = ""
                continue
            for line in lines:
                if match := _CAPTION.fullmatch(line):
                    name, caption = match.groups()
                elif match := _TITLE.fullmatch(line):
                    title = match[1]
                elif line.startswith("- "):
                    points.append(line.removeprefix("- "))
                else:
                    notes.append(line)
        return cls(name, caption, notes, grids, title, points)


def _head(header: Sequence[str], left: Sequence[bool]) -> str:
    """Column headers; those that begin with the same word go below it: "Test 0 %", "Test 10 %"."""
    corner, *columns = header
    first = escape(corner) or '<span class="hidden">row</span>'
    groups = [(word, len(list(members))) for word, members in groupby(columns, _first_word)]
    if len(groups) < 2 or any(not word or span < 2 for word, span in groups):
        cells = "".join(
            f'<th scope="col"{_aligned(words)}>{_marked(column)}</th>'
            for column, words in zip(columns, left[1:], strict=True)
        )
        return f'<tr><th scope="col">{first}</th>{cells}</tr>'
    over = "".join(
        f'<th scope="colgroup" colspan="{span}">{escape(word)}</th>' for word, span in groups
    )
    cells = "".join(f'<th scope="col">{escape(c.partition(" ")[2])}</th>' for c in columns)
    return f'<tr><th scope="col" rowspan="2">{first}</th>{over}</tr>\n<tr>{cells}</tr>'


def _marked(header: str) -> str:
    """A header, ``**0.8**`` as a mark: all headers are bold."""
    text = header.removeprefix("**").removesuffix("**")
    return escape(text) if text == header else f"<mark>{escape(text)}</mark>"


def _first_word(header: str) -> str:
    word, _, rest = header.partition(" ")
    return word if rest and word.isalpha() else ""


def _is_words(text: str) -> bool:
    return bool(text) and not _CELL.fullmatch(text) and not text[0].isdigit()


def _aligned(words: bool) -> str:
    return ' class="words"' if words else ""


def _cell(text: str, words: bool) -> str:
    """A number with its spread beside it and the paper's below; other text as it is."""
    match = _CELL.fullmatch(text)
    if words or not match:
        return f"<td{_aligned(words)}>{escape(text)}</td>"
    mean = match["mean"] or ""
    mean = f"<b>{mean}</b>" if match["bold"] else mean
    spread = f' <span class="std">{escape(match["std"].strip())}</span>' if match["std"] else ""
    more = f' <span class="state">{escape(match["more"].strip())}</span>' if match["more"] else ""
    printed = f"<b>{match['paper']}</b>" if match["paper_bold"] else match["paper"]
    paper = (
        f' <span class="paper"><span class="hidden">paper </span>[{printed}]</span>'
        if printed
        else ""
    )
    return f'<td><span class="ours">{mean}{spread}{more}</span>{paper}</td>'
