"""Reads and writes tables of images and labels: CSV, from a spreadsheet or a script."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from chainer_jo import files
from chainer_jo.data.input_problems import Problems
from chainer_jo.errors import UserError

PATH, LABEL = "path", "label"
#: Hugging Face's tables of images: name of the file, and of its column of paths.
METADATA, FILE_NAME = "metadata.csv", "file_name"
_PARQUET = b"PAR1"
_DELIMITERS = (",", "\t", ";")  # the last is what spreadsheets write where a comma is decimal
#: Characters of a path or label at most; other columns may have whole texts or thumbnails.
_LONGEST = 1 << 17
csv.field_size_limit(1 << 30)
_FURTHER_LABEL = re.compile(r"label[ _]?\d+", re.IGNORECASE)
_QUOTE_LATER = re.compile(r'\s+"')  # which CSV takes for a part of the text


@dataclass(frozen=True)
class TableForm:
    """Columns of a table to read, and the folder of its images.

    Attributes
    ----------
    paths : possible names of the column, in any case; the first one in the table counts.
    labels : possible names of each label column, all of which count.
    root : folder that the paths are below; None: the folder of the table.
    asks : True refuses a table with further columns such as "label2" and names the flag.
    """

    paths: tuple[str, ...] = (PATH, FILE_NAME)
    labels: tuple[tuple[str, ...], ...] = ((LABEL,),)
    root: str | None = None
    asks: bool = False

    @classmethod
    def of(
        cls, path: str | None, label: str | None, root: str | None, several: tuple[str, ...] = ()
    ) -> TableForm:
        """Form with the given columns; None: the usual ones."""
        labels = tuple((name,) for name in several or (label or LABEL,))
        return cls((path,) if path else USUAL.paths, labels, root, not (label or several))

    def or_usual(self) -> TableForm:
        """Form of further tables of one label an image, which may have the usual columns, too."""
        labels = (*(self.labels[0] if len(self.labels) == 1 else ()), LABEL)
        return TableForm((*self.paths, *USUAL.paths), (labels,), self.root)

    def folder(self, file: str | Path) -> Path:
        """Folder of the images of a table."""
        return files.expanded(self.root or Path(file).parent)

    def places(self, header: list[str]) -> list[int]:
        """Indices of the columns of paths and labels; empty without one of them."""
        at = {name.strip().casefold(): i for i, name in enumerate(header)}
        needed = self.paths, *self.labels
        found = [[at[n.casefold()] for n in names if n.casefold() in at] for names in needed]
        return [places[0] for places in found] if all(found) else []

    def __str__(self) -> str:
        needed = self.paths, *self.labels
        names = (" or ".join(map(repr, dict.fromkeys(each))) for each in needed)
        return f"columns {' and '.join(names)}"


USUAL = TableForm()


def key(path: str) -> str:
    """Normal form of a path, by which tables are joined: "a/b" for "./a//b", accents in NFC."""
    return unicodedata.normalize("NFC", posixpath.normpath(path))


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Images and the names of their classes, the rows of a table, column by column.

    Attributes
    ----------
    root : folder that the paths are below.
    paths : of the images, relative to the root, in normal form ("./a//b" is "a/b"), each once.
    labels : names of classes; of several labels of an image the first.
    lines : where each row begins in the file, from 1; empty if there is no file.
    columns : the other columns by name, unchanged; also the label columns if there are several.
    votes : names of classes by label column, "" for an empty cell; empty for one label an image.
    header : names of the columns of paths and of labels; "label" for several.
    """

    root: Path
    paths: list[str]
    labels: list[str]
    lines: list[int]
    columns: dict[str, list[str]]
    votes: dict[str, list[str]] = field(default_factory=dict)
    header: tuple[str, str] = (PATH, LABEL)


def read(file: str | Path, form: TableForm = USUAL) -> LabelTable:
    """Reads a table with a header that has a column of paths and one of labels, or several ones of
    labels, in which an image may have empty cells, but not all of them.

    Columns are separated by commas, tabs or semicolons; quotes are as in CSV. The text is UTF-8, or
    UTF-16 with a byte order mark. Empty lines are skipped. Labels are stripped of spaces and put in
    NFC, so that an accent is the same however it is encoded.

    Raises UserError, naming all kinds of problems at once, with lines.
    """
    where, folder = f"labels {str(file)!r}", form.folder(file)
    if not folder.is_dir() and form.root:
        raise UserError(f"--images {str(folder)!r}: no such folder, expected the root of the paths")
    root = PurePosixPath(folder)
    rows = _rows(file, where, form)
    names = [name.strip() for name in next(rows)[1]]
    named = [name.casefold() for name in names if name]
    if len(set(named)) < len(named):
        raise UserError(f"{where}: two columns of one name in {names}, expected none")
    places = form.places(names)
    path_at, *label_at = places
    if path_at in label_at:
        raise UserError(
            f"{where}: {names[path_at]!r} is one column for paths and labels, expected two"
        )
    possible = {name.casefold() for name in form.labels[0]}
    meant = [name for name in names if name.casefold() in possible]
    if len(meant) > 1:
        raise UserError(f"{where}: columns {meant}, expected one of them")
    if form.asks and (more := [name for name in names if _FURTHER_LABEL.fullmatch(name)]):
        flag = ",".join((*meant, *more))
        raise UserError(
            f"{where}: columns {flag}, expected --label-columns {flag} for several labels an "
            f"image, or --label-column {meant[0]}"
        )
    problems, paths, votes, kept = Problems(), [], [], []
    line_of: dict[str, int] = {}
    for line, row in rows:
        if len(row) != len(names):
            kind = f"{len(row)} fields, expected {len(names)} as in the header"
            problems.add(kind, f"line {line}")
            continue
        path = below(root, row[path_at]) if row[path_at] else ""
        given = [unicodedata.normalize("NFC", row[i].strip()) for i in label_at]
        if max(map(len, (path, *given))) > _LONGEST:
            problems.add(f"path or label of more than {_LONGEST:,} characters", f"line {line}")
        elif any(_QUOTE_LATER.match(row[i]) for i in places):
            problems.add("a space before a quote, expected none", f"line {line}")
        elif not path:
            problems.add("no path", f"line {line}")
        elif not any(given):
            problems.add("no label", f"line {line}")
        elif path[0] == "/" or path in (".", "..") or path.startswith("../") or "\0" in path:
            problems.add(f"not a path below {str(root)!r}", f"line {line}, {path!r}")
        elif (first := line_of.setdefault(key(path), line)) != line:
            problems.add("a path twice", f"lines {first} and {line}, {path!r}")
        else:
            paths.append(path)
            votes.append(given)
            kept.append(row)
    problems.raise_if_any(where)
    if not paths:
        raise UserError(f"{where}: no rows below the header, expected one per image")
    columns: dict[str, list[str]] = {}
    single = len(label_at) == 1
    for i, name in enumerate(names):
        values = [row[i] for row in kept]
        if i == path_at or (single and i in label_at) or not (name or any(values)):
            continue  # spreadsheets end their rows with commas
        if name in columns:
            raise UserError(f"{where}: two columns have no name, expected one at most")
        columns[name] = values
    labels = [next(filter(None, given)) for given in votes]
    by_column = {} if single else {names[i]: [x[j] for x in votes] for j, i in enumerate(label_at)}
    header = names[path_at], names[label_at[0]] if single else LABEL
    return LabelTable(folder, paths, labels, list(line_of.values()), columns, by_column, header)


def write(file: IO[str], columns: Mapping[str, Iterable]) -> None:
    """Writes a table with a header; ``columns`` by name."""
    plain = csv.writer(file, lineterminator="\n")
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in (tuple(columns), *zip(*columns.values(), strict=True)):
        # A carriage return ends a line for readers, but is not quoted for that.
        (quoted if any("\r" in str(field) for field in row) else plain).writerow(row)


def below(root: PurePosixPath, path: str) -> str:
    """Normal form of a path, relative to the root if it is absolute and lies there."""
    path = posixpath.normpath(path)
    absolute = PurePosixPath(path)
    if absolute.is_absolute() and absolute.is_relative_to(root):
        return str(absolute.relative_to(root))
    return path


def is_metadata(file: Path) -> bool:
    """True for a table of Hugging Face's form in a folder of images."""
    with contextlib.suppress(OSError, UserError), files.opened(file) as table:
        # In any encoding; `read` refuses the other ones.
        text = table.read(1 << 16).decode("latin-1").replace("\0", "")
        return bool(_delimiter(text.lstrip("\xff\xfe\xef\xbb\xbf"), "", TableForm((FILE_NAME,))))
    return False


def _text(file: str | Path, where: str) -> str:
    try:
        content = files.content(file)
    except OSError as error:
        raise UserError(f"{where}: {error.strerror or error}, expected a CSV or TSV") from None
    if content.startswith(_PARQUET):
        raise UserError(f"{where}: a Parquet file, expected one saved as CSV")
    sixteen = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if sixteen else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{where}: line {line} is not UTF-8, expected a table saved as CSV UTF-8"
        ) from None


def _delimiter(text: str, where: str, form: TableForm) -> str:
    """Delimiter with which the header has the needed columns."""
    if not text.strip():
        raise UserError(f"{where}: empty, expected a header with {form}")
    for delimiter in _DELIMITERS:
        with contextlib.suppress(csv.Error):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            if form.places(next(filter(_has_text, reader), [])):
                return delimiter
    first = text.strip().splitlines()[0]
    shown = first if len(first) <= 60 else first[:60] + "..."
    raise UserError(
        f"{where}: the header is {shown!r}, expected {form}, separated by commas, tabs or "
        "semicolons"
    )


def _has_text(row: list[str]) -> bool:
    return any(map(str.strip, row))


def _rows(file: str | Path, where: str, form: TableForm) -> Iterator[tuple[int, list[str]]]:
    """Rows with text, the header first, with the line in which each begins."""
    text = _text(file, where)
    delimiter = _delimiter(text, where, form)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            if _has_text(row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{where}: line {line}: {error}, expected quotes as in CSV") from None
