"""report.html of ``chainer-jo relabel``: what was changed, how right that may be, every image."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from chainer_jo import files
from chainer_jo.relabel import thumbnails
from chainer_jo.report import relabelled_page
from chainer_jo.report.relabelled import Relabelled

NAME = "report.html"
#: Relabelled images up to which all are in the page; of more it shows those on disk.
EMBEDDED = 100_000


@dataclass(frozen=True)
class RelabelReport:
    """What the page shows besides the images.

    Attributes
    ----------
    title, about : the heading, and a sentence under it.
    tiles : numbers to be seen first, with what they are.
    tables : rows of text, header first, by their headings.
    plot : a PNG of curves, with what it shows; None if there are none.
    facts : how it was computed, names and values.
    """

    title: str
    about: str
    tiles: Sequence[tuple[str, str]]
    tables: dict[str, list[list[str]]]
    plot: tuple[bytes, str] | None
    facts: dict[str, str]

    def write(self, folder: Path, relabelled: Relabelled, usual_size: int) -> Path:
        """Writes the page; returns its path.

        Parameters
        ----------
        usual_size : of the images, in pixels.
        """
        path = folder / NAME
        pairs = relabelled_page.moved(relabelled)
        content = relabelled_page.listing(relabelled, pairs)
        sheets: list[str] = []
        number = sum(map(len, pairs.values()))
        if number > EMBEDDED:
            content["base"] = relabelled_page.base(relabelled.images.root, folder)
        else:
            side = thumbnails.side_for(number, usual_size)
            first = {}
            for name, indices in pairs.items():
                first[name] = len(sheets)
                sheets += thumbnails.sheets(relabelled.images.paths(indices), side)
            content |= {
                "cells": thumbnails.CELLS,
                "columns": thumbnails.COLUMNS,
                "side": side,
                "sheets": first,
            }
        about, sections = escape(self.about), self._sections()
        text = relabelled_page.page(self.title, about, sections, content, sheets)
        files.write_text(path, text)
        return path

    def _sections(self) -> str:
        tiles = "".join(f"<li><b>{escape(n)}</b> {escape(what)}</li>" for n, what in self.tiles)
        parts = [_section(heading, _table(rows)) for heading, rows in self.tables.items()]
        if self.plot:
            picture, shown = self.plot
            uri = "data:image/png;base64," + base64.b64encode(picture).decode()
            drawn = f'<figure class="plot"><img src="{uri}" alt="{escape(shown)}"></figure>'
            parts.insert(0, _section(shown, drawn))
        facts = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in self.facts.items())
        parts.append(_section("How it was computed", f"<dl>{facts}</dl>"))
        return f'<ul class="tiles">{tiles}</ul>\n<div class="columns">{"".join(parts)}</div>'


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{content}</section>\n"


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    lines = ["<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body]
    return (
        f'<div class="wide"><table class="text"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
