"""report.html of ``chainer-jo relabel``: changed labels, estimates of their accuracy, and the
images to review by hand."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import io
import json
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo import __version__, files
from chainer_jo.data import decoding
from chainer_jo.devices import usable_cores
from chainer_jo.errors import UserError
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.outcome.outcome import Outcome
from chainer_jo.relabel.read.image_features import usual_size
from chainer_jo.relabel.show.summary import WRONG_OR_MORE, given_labels, tables
from chainer_jo.text import counted, percent

#: Most groups of duplicates that are listed.
MOST_DUPLICATES = 50
#: Small pictures on a sheet, one image file: a page of thousands opens at once.
COLUMNS, ROWS = 12, 10
#: Images on a sheet.
CELLS = COLUMNS * ROWS
#: Possible sides of the small pictures, in pixels.
SIDES = (96, 64, 48, 32, 24)
#: Most images whose sheets the page contains; the sheets of more lie in a folder beside the page.
MOST_EMBEDDED = 5_000
#: Largest size of all sheets, and estimated size of a pixel of a JPEG, in bytes.
MAX_BYTES, BYTES_PER_PIXEL = 96 << 20, 0.35
#: Largest side, in pixels, of pictures on PNGs: users see their single pixels.
MAX_PNG_SIDE = 16
NO_WARNING = (
    "<p>No warning. The checks, listed in docs/label-errors.md, do not prove an improvement.</p>"
)


def write(outcome: Outcome, name: str, path: Path, folder: Path, command: str) -> Path:
    """Writes the page to a path, which it returns, and sheets of many pictures to a folder beside
    it. The page, which may be passed on, shows only the last part of the data's path, ``name``; the
    ``command`` is printed at its end."""
    labels = outcome.labels
    listed = to_review(labels)
    rows = np.concatenate([listed, np.setdiff1d(outcome.audit, listed)])
    content = _content(labels, rows, len(listed), outcome.audit)
    side = SIDES[-1]
    with contextlib.suppress(UserError):  # by given features no image has to be opened
        side = side_for(len(rows), usual_size(labels.images))
    content |= {"cells": CELLS, "columns": COLUMNS, "side": side, "kind": kind_for(side)}
    pictures = sheets(labels.images.files(rows), side)
    embedded = ""
    _remove_sheets(folder)
    if len(rows) > MOST_EMBEDDED:
        content["folder"] = folder.name
        folder.mkdir(exist_ok=True)
        for i, sheet in enumerate(pictures):
            files.write_bytes(folder / f"{i}.{kind_for(side)}", sheet)
    else:
        embedded = "\n".join(
            f'<script type="text/plain" id="sheet{i}">{base64.b64encode(sheet).decode()}</script>'
            for i, sheet in enumerate(pictures)
        )
    changed, classes = int(labels.changed.sum()), len(labels.images.class_names)
    about = f"{len(labels.images):,} images of {classes} classes."
    if names := labels.images.label_columns:
        about += f" Given labels are the majority of {', '.join(names)}; the network decides ties."
    about += f" The list for review has {len(listed):,} images: {changed:,} whose label changed"
    if kept := len(listed) - changed:
        about += f" and {kept:,} whose given label is doubtful but kept"
    if reviewed := int(labels.reviewed.sum()):
        about += f". {counted(reviewed, 'label')} reviewed by hand"
    about += f". {audited.in_words()}" if (audited := outcome.audited) else "."
    doubt = f'<p class="doubt">{html.escape(outcome.doubt)}</p>' if outcome.doubt else NO_WARNING
    tiles, sections = _sections(outcome)
    made = f"chainer_jo {__version__}, {time.strftime('%Y-%m-%d')}"
    page = filled(
        content,
        title=html.escape(f"Corrected labels: {Path(name).absolute().name}"),
        about=f"{doubt}\n<p>{html.escape(about)}</p>\n{tiles}",
        sections=sections,
        sheets=embedded,
        made=f"{made}: <code>{html.escape(command)}</code>",
    )
    files.write_text(path, page)
    return path


def _sections(outcome: Outcome) -> tuple[str, str]:
    """Main numbers; tables and settings of the computation."""
    labels, share = outcome.labels, outcome.labels.errors.share_wrong
    tiles = [
        (f"{int(labels.changed.sum()):,}", f"of {len(labels.images):,} labels changed"),
        (percent(share), f"of the {given_labels(labels)} are estimated {WRONG_OR_MORE}"),
    ]
    for a in outcome.accuracies:
        shares = " → ".join(percent(p) for p in (a.before, a.after) if p is not None)
        tiles.append((shares, f"accuracy on {a.of}"))
    for rule, scores in list(labels.scores().items())[-1:]:
        before, after = percent(scores.right_before), percent(scores.right_after)
        tiles[1:1] = [
            (f"{before} → {after}", f"label accuracy ({scores.known:,} true labels known)"),
            (percent(scores.f1), f"F1 of label error detection: {rule}"),
        ]
    shown = tables(outcome)
    if duplicates := labels.errors.duplicates:
        shown["Identical or nearly identical images"] = _duplicate_rows(labels, duplicates)
    escape = html.escape
    parts = [_section(heading, _table(rows)) for heading, rows in shown.items()]
    facts = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in outcome.about.items())
    columns = f'<div class="columns">{"".join(parts)}</div>'
    folds = [("tables", "Tables", columns), ("computation", "Computation", f"<dl>{facts}</dl>")]
    below = "".join(
        f'<details id="{name}"><summary><h2>{heading}</h2></summary>{inside}</details>\n'
        for name, heading, inside in folds
    )
    first = "".join(f"<li><b>{escape(n)}</b> {escape(text)}</li>" for n, text in tiles)
    return f'<ul class="tiles">{first}</ul>', below


def to_review(labels: CorrectedLabels) -> np.ndarray:
    """Rows of images whose label was changed or is estimated wrong, the most certain first."""
    errors = labels.errors
    rows = np.flatnonzero(labels.changed | errors.changed | errors.wrong)
    return rows[np.argsort(errors.rank[rows])]


def _rounded(probability: float) -> float:
    """Probability to three digits; 1 only for 1."""
    return min(float(f"{probability:.3g}"), 0.9999) if probability < 1 else 1.0


def _content(labels: CorrectedLabels, rows: np.ndarray, listed: int, audit: np.ndarray) -> dict:
    """Data of the page's script: path, given and new label, the probabilities of both and, of
    several labels, all; of the ``listed`` images first, then of the further ones of the audit. Path
    and label of all images that were reviewed by hand."""
    images, errors = labels.images, labels.errors
    place = {row: i for i, row in enumerate(rows.tolist())}
    reviewed, done = labels.reviewed, (images.paths, labels.new)
    columns = [
        images.paths[rows].tolist(),
        errors.given[rows].tolist(),
        errors.new[rows].tolist(),
        map(_rounded, errors.probability_given[rows]),
        map(_rounded, errors.probability_new[rows]),
    ]
    if errors.votes is not None:
        columns.append(errors.votes[rows].tolist())
    return {
        "key": images.fingerprint,
        "classes": list(images.class_names),
        "rows": list(zip(*columns, strict=True)),
        "reviewed": list(zip(*(column[reviewed].tolist() for column in done), strict=True)),
        "listed": listed,
        "audit": [place[row] for row in audit.tolist()],
        "estimate": errors.share_wrong,
    }


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{html.escape(heading)}</h2>{content}</section>\n"


def _table(rows: list[list[str]]) -> str:
    def line(row: list[str], tag: str) -> str:
        cells = (f"<{tag}>{html.escape(text)}</{tag}>" for text in row)
        return f"<tr>{''.join(cells)}</tr>"

    head, *body = rows
    return (
        f'<div class="wide high" tabindex="0"><table class="text"><thead>{line(head, "th")}</thead>'
        f"<tbody>{''.join(line(row, 'td') for row in body)}</tbody></table></div>"
    )


def _duplicate_rows(labels: CorrectedLabels, groups: Sequence[np.ndarray]) -> list[list[str]]:
    images, given = labels.images, labels.errors.given
    rows = [["images", "given labels"]]
    for group in groups[:MOST_DUPLICATES]:
        shown = ", ".join(images.paths[i] for i in group[:3]) + (", ..." if len(group) > 3 else "")
        names = dict.fromkeys(images.class_names[given[i]] for i in group)
        rows.append([shown, ", ".join(names)])
    return rows


def side_for(number: int, usual_size: int) -> int:
    """Side in pixels of ``number`` small pictures: at most ``usual_size``, less for many
    pictures."""
    fits = (side for side in SIDES if number * side**2 * BYTES_PER_PIXEL <= MAX_BYTES)
    return min(next(fits, SIDES[-1]), usual_size)


def kind_for(side: int) -> str:
    """Format of sheets, also the ending of their names."""
    return "png" if side <= MAX_PNG_SIDE else "jpeg"


def _remove_sheets(folder: Path) -> None:
    """Removes an earlier report's sheets, and their folder if nothing else is in it. Raises
    UserError if the folder is a link."""
    if folder.is_symlink():
        raise UserError(f"{folder}: a link, expected a folder or nothing")
    for path in folder.glob("*.*"):
        if path.stem.isdecimal() and path.suffix in (".png", ".jpeg"):
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def sheets(paths: Sequence[str], side: int) -> Iterator[bytes]:
    """Sheets of `CELLS` images each, row by row, as image files; the last one is no larger than
    its images need. An image that cannot be opened leaves its cell empty."""
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


def _sheet(cells: list[Image.Image | None], side: int) -> bytes:
    columns = min(COLUMNS, len(cells))
    sheet = Image.new("RGB", (columns * side, -(-len(cells) // columns) * side), "#888")
    for i, image in enumerate(cells):
        if image is not None:
            left, top = i % columns * side, i // columns * side
            margin = (side - image.width) // 2, (side - image.height) // 2
            sheet.paste(image, (left + margin[0], top + margin[1]))
    out = io.BytesIO()
    sheet.save(out, kind_for(side), quality=80, optimize=True)
    return out.getvalue()


def filled(content: dict, **pieces: str) -> str:
    """The template ``report.html`` with its style and `policy`, ``content`` as JSON for its script,
    and ``pieces`` of HTML."""
    folder = resources.files(__package__)
    style, template = (folder.joinpath(n).read_text("utf-8") for n in ("page.css", "report.html"))
    template = template.replace("{{style}}", style)
    # In the script that holds it, "</script" would end it and "<!--<script" hide its end.
    pieces["content"] = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    pieces["policy"] = policy(template)
    # In one go: what is put in is not looked at again.
    return re.sub(r"{{(\w+)}}", lambda match: pieces[match[1]], template)


def policy(template: str) -> str:
    """Content security policy of a page, as a ``<meta>``: text that was left unescaped can
    neither run a script, nor change a style, nor load a file. The policy allows the style and the
    script of the ``template``, by hashes, and images in the page, from its script, or beside it."""
    allowed = {"img": "data: blob: 'self' file:", "style": "'none'", "script": "'none'"}
    for tag, text in re.findall(r"<(style|script)>(.*?)</\1>", template, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[tag] = f"'sha256-{digest}'"
    sources = "".join(f"; {kind}-src {source}" for kind, source in allowed.items())
    return (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"base-uri 'none'; form-action 'none'{sources}\">"
    )
