"""report.html of ``chainer-jo relabel``: what was changed, how right that may be, every image that
is worth a look, to be judged."""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.datasets import decoding
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.results_folder import REPORT

#: Images up to which all are in the page; of more it shows those on disk.
EMBEDDED = 100_000
#: Small pictures, a hundred in one file: a page of thousands opens at once.
COLUMNS, ROWS = 12, 10
#: Images on a sheet.
CELLS = COLUMNS * ROWS
#: Sides to choose from, in pixels.
SIDES = (96, 64, 48, 32, 24)
#: All sheets together take BYTES at most, if a pixel of a JPEG takes PER_PIXEL bytes.
BYTES, PER_PIXEL = 24 << 20, 0.35
#: Up to this side sheets are PNGs: such images are looked at pixel by pixel.
LOSSLESS = 16


@dataclass(frozen=True)
class RelabelReport:
    """What the page shows besides the images.

    Attributes
    ----------
    title, about : the heading, and a sentence under it.
    doubt : why the new labels may be no better; empty if nothing says so.
    tiles : numbers to be seen first, with what they are.
    tables : rows of text, header first, by their headings.
    plot : a PNG of curves, with what it shows; None if there are none.
    facts : how it was computed, names and values.
    """

    title: str
    about: str
    doubt: str
    tiles: Sequence[tuple[str, str]]
    tables: dict[str, list[list[str]]]
    plot: tuple[bytes, str] | None
    facts: dict[str, str]

    def write(
        self, folder: Path, labels: CorrectedLabels, audit: np.ndarray, usual_size: int
    ) -> Path:
        """Writes the page; returns its path.

        Parameters
        ----------
        audit : rows of the images to be judged that were drawn at random.
        usual_size : of the images, in pixels.
        """
        path, images = folder / REPORT, labels.images
        listed = to_look_at(labels)
        rows = np.concatenate([listed, np.setdiff1d(audit, listed)])
        content = _content(labels, rows, len(listed), audit)
        pictures: list[str] = []
        if len(rows) > EMBEDDED:
            content["base"] = quote(Path(os.path.relpath(images.root, folder)).as_posix()) + "/"
        else:
            side = side_for(len(rows), usual_size)
            pictures += sheets(images.files(rows), side)
            content |= {"cells": CELLS, "columns": COLUMNS, "side": side}
        files.write_text(path, self._page(content, pictures))
        return path

    def _page(self, content: dict, sheets: Sequence[str]) -> str:
        template = resources.files("chainer_jo.relabel").joinpath("report.html").read_text()
        # In the script that holds the data, "</script" would end it and "<!--<script" hide its end.
        text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
        pictures = "\n".join(
            f'<script type="text/plain" id="sheet{i}">{sheet}</script>'
            for i, sheet in enumerate(sheets)
        )
        doubt = f'<p class="doubt">{html.escape(self.doubt)}</p>\n' if self.doubt else ""
        parts = {
            "title": html.escape(self.title),
            "about": f"{doubt}<p>{html.escape(self.about)}</p>",
            "sections": self._sections(),
            "content": text,
            "sheets": pictures,
        }
        # In one go: what is put in is not looked at again.
        return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], template)

    def _sections(self) -> str:
        escape = html.escape
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


def to_look_at(labels: CorrectedLabels) -> np.ndarray:
    """Rows of the images whose label was changed or is called wrong, the surest errors first."""
    errors = labels.errors
    rows = np.flatnonzero(labels.changed | errors.changed | errors.wrong)
    return rows[np.argsort(errors.rank[rows])]


def _content(labels: CorrectedLabels, rows: np.ndarray, listed: int, audit: np.ndarray) -> dict:
    """What the page's script shows: of each image its path, given label, what the method says, and
    the probabilities of both; first the ``listed`` ones, then those that are audited besides."""
    images, errors = labels.images, labels.errors
    place = {row: i for i, row in enumerate(rows.tolist())}
    return {
        "key": images.fingerprint,
        "classes": list(images.class_names),
        "rows": [
            [
                images.paths[i],
                int(errors.given[i]),
                int(errors.new[i]),
                float(f"{errors.probability_given[i]:.3g}"),
                float(f"{errors.probability_new[i]:.3g}"),
            ]
            for i in rows.tolist()
        ],
        "listed": listed,
        "audit": [place[row] for row in audit.tolist()],
        "estimate": errors.share_wrong,
    }


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{html.escape(heading)}</h2>{content}</section>\n"


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    lines = [
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in body
    ]
    return (
        f'<div class="wide high" tabindex="0"><table class="text"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def side_for(number: int, usual_size: int) -> int:
    """Pixels of a side, for ``number`` images of this usual size: no more than they have, and fewer
    where there are many."""
    fits = (side for side in SIDES if number * side**2 * PER_PIXEL <= BYTES)
    return min(next(fits, SIDES[-1]), usual_size)


def sheets(paths: Sequence[str], side: int) -> Iterator[str]:
    """The images on sheets of `CELLS` each, row by row, as data URIs; the last may have fewer rows,
    or be one row alone, no longer than it has to be.

    An image that cannot be opened leaves its cell empty.
    """
    with ThreadPoolExecutor(usable_cores()) as pool:
        for start in range(0, len(paths), CELLS):
            cells = pool.map(lambda path: _cell(path, side), paths[start : start + CELLS])
            yield _sheet(list(cells), side)


def _cell(path: str, side: int) -> Image.Image | None:
    try:
        image = decoding.read(path, enough=side).convert("RGB")
    except Exception:  # a picture less is no reason to lose a report
        return None
    image.thumbnail((side, side), Image.Resampling.BILINEAR)
    return image


def _sheet(cells: list[Image.Image | None], side: int) -> str:
    columns = min(COLUMNS, len(cells))
    sheet = Image.new("RGB", (columns * side, -(-len(cells) // columns) * side), "#888")
    for i, image in enumerate(cells):
        if image is not None:
            left, top = i % columns * side, i // columns * side
            margin = (side - image.width) // 2, (side - image.height) // 2
            sheet.paste(image, (left + margin[0], top + margin[1]))
    out, kind = io.BytesIO(), "png" if side <= LOSSLESS else "jpeg"
    sheet.save(out, kind, quality=80, optimize=True)
    return f"data:image/{kind};base64," + base64.b64encode(out.getvalue()).decode()
