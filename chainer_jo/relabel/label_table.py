"""A table of images and labels as people write it: CSV, from a spreadsheet or a script."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import posixpath
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chainer_jo.datasets.problems import Problems
from chainer_jo.errors import UserError

PATH, LABEL = "path", "label"
_DELIMITERS = (",", "\t", ";")  # the last is what spreadsheets write where a comma is decimal


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The rows of a table, column by column.

    Attributes
    ----------
    paths : of the images, relative to the table's folder, in normal form ("./a//b" is "a/b"); each
        once.
    labels : names of classes.
    lines : where each row begins in the file, from 1.
    columns : the other columns by their names, as they were.
    """

    paths: list[str]
    labels: list[str]
    lines: list[int]
    columns: dict[str, list[str]]


def read(file: str | Path) -> LabelTable:
    """A table with a header, in which there are columns `path` and `label`.

    The columns are separated by commas, tabs or semicolons, as the header is; quotes are those of
    CSV. The text is UTF-8, or UTF-16 with a byte order mark. Empty lines do not count. Spaces
    around a label do not count, and an accent is the same however it is encoded.

    Raises
    ------
    UserError
        naming all kinds of problems at once, with lines: not text, no such columns, no rows, a row
        of another length, a path or label missing, a path twice or outside the table's folder.
    """
    file = Path(file)
    text = _text(file)
    delimiter = _delimiter(text, file)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows = _rows(reader, file)
    _, header = next(rows)
    names = [name.strip() for name in header]
    at = {name.casefold(): i for i, name in enumerate(names)}
    if len(at) < len(names):
        raise UserError(f"labels {str(file)!r}: two columns of one name in {names}, expected none")
    path_at, label_at = at[PATH], at[LABEL]
    problems = Problems()
    kept: list[list[str]] = []
    paths: list[str] = []
    labels: list[str] = []
    line_of: dict[str, int] = {}
    for line, row in rows:
        if len(row) != len(names):
            kind = f"{len(row)} fields, expected {len(names)} as in the header"
            problems.add(kind, f"line {line}")
            continue
        path = posixpath.normpath(row[path_at]) if row[path_at] else ""
        label = unicodedata.normalize("NFC", row[label_at].strip())
        if not path:
            problems.add("no path", f"line {line}")
        elif not label:
            problems.add("no label", f"line {line}")
        elif path[0] == "/" or path in (".", "..") or path.startswith("../") or "\0" in path:
            problems.add("not a path below the folder of the table", f"line {line}, {path!r}")
        elif (first := line_of.setdefault(path, line)) != line:
            problems.add("a path twice", f"lines {first} and {line}, {path!r}")
        else:
            paths.append(path)
            labels.append(label)
            kept.append(row)
    if not line_of and not len(problems):
        raise UserError(f"labels {str(file)!r}: no rows below the header, expected one per image")
    problems.raise_if_any(f"labels {str(file)!r}")
    columns = {
        name: [row[i] for row in kept]
        for i, name in enumerate(names)
        if i not in (path_at, label_at)
    }
    return LabelTable(paths, labels, list(line_of.values()), columns)


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"labels {str(file)!r}: {error.strerror or error}") from None
    sixteen = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if sixteen else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"labels {str(file)!r}: line {line} is not UTF-8, expected a table saved as CSV UTF-8"
        ) from None


def _delimiter(text: str, file: Path) -> str:
    """The one by which the header has the columns that are needed."""
    lines = (line.strip() for line in io.StringIO(text, newline=""))
    first = next(filter(None, lines), None)
    if first is None:
        raise UserError(f"labels {str(file)!r}: empty, expected a header with {PATH} and {LABEL}")
    for delimiter in _DELIMITERS:
        with contextlib.suppress(csv.Error):  # a line of more than 131,072 characters, say
            header = next(csv.reader([first], delimiter=delimiter))
            if {PATH, LABEL} <= {name.strip().casefold() for name in header}:
                return delimiter
    shown = first if len(first) <= 60 else first[:60] + "..."
    raise UserError(
        f"labels {str(file)!r}: the header is {shown!r}, expected columns {PATH!r} and {LABEL!r}, "
        "separated by commas, tabs or semicolons"
    )


def _rows(reader: Iterator[list[str]], file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that say something, with the line in which each begins."""
    line = 1
    try:
        for row in reader:
            if any(row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"labels {str(file)!r}: line {line}: {error}, expected quotes as in CSV"
        ) from None
