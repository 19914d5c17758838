"""Images in class folders, whose names are the classes."""

from __future__ import annotations

import logging
import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from chainer_jo import files
from chainer_jo.data.image_names import ENDINGS, is_hidden, is_image
from chainer_jo.errors import UserError
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import LabelTable

#: Names of the folders of a divided data set, in any case, and the use of each part.
PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "val", "valid"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}

_log = logging.getLogger(__name__)


def parts(root: Path) -> dict[str, str]:
    """Parts of a divided data set, {use: folder}, with a training part; else empty. A folder with
    images directly in it is a class, whatever its name.

    Raises UserError for two folders of one use; without a training part also if all folders are
    parts, or if one repeats a class that is beside it.
    """
    folders = _names(root, folders=True)
    names = [name for name in folders if name.lower() in PARTS]
    names.sort(key=lambda name: [*PARTS].index(name.lower()))
    folder_of, shown = {PARTS[name.lower()]: name for name in names}, ", ".join(names)
    classes = [n for n in names if any(map(is_image, _names(root / n, folders=False)))]
    if folder_of.get("train") not in (None, *classes):
        if len(folder_of) < len(names):
            raise UserError(f"images in {str(root)!r}: {shown}, expected one of a kind")
        if beside := [f"{name}/" for name in folders if name not in names]:
            _note(root, beside, "as they are beside the parts of the set")
        return folder_of
    others = {*folders} - {*names}
    divided = [n for n in names if n not in classes and others & {*_names(root / n, folders=True)}]
    if divided or names and not (others or classes):
        shown = ", ".join(divided or names)
        raise UserError(f"images in {str(root)!r}: {shown} without train/, expected both")
    if named := [name for name in names if images_below(root / name)]:
        _log.warning("%s: %s: classes, not parts of the set", root, ", ".join(named))
    return {}


def images(root: Path, below: str = "") -> LabelTable:
    """Images in ``root / below / <class> / ...``: their paths below `root`, and their classes.

    In the order of their names. Folders may be nested within a class; links are followed; hidden
    files do not count. Other files are left out, which is logged. Classes are as in a
    `label_table`, without spaces around them and in NFC; paths are as they are.

    Raises UserError if there is no image, or a link that leads nowhere.
    """
    top = root / below
    prefix = f"{below}/" if below else ""
    paths: list[str] = []
    classes: list[str] = []
    others = _names(top, folders=False)
    above = _above(root / "a class") | _above(top / "a class")
    for name in _names(top, folders=True):
        all_files = [*_files(top / name, f"{name}/", above | _above(top / name))]
        kept = [path for path in all_files if is_image(path)]
        paths += [prefix + path for path in kept]
        classes += [unicodedata.normalize("NFC", name.strip() or name)] * len(kept)
        others += [path for path in all_files if not is_image(path)] if kept else [f"{name}/"]
    if not paths:
        raise UserError(
            f"images in {str(top)!r}: none, expected folders of classes with images in them "
            f"({', '.join(ENDINGS)}){tables_in(top)}"
        )
    first: dict[str, str] = {}
    for path in paths:
        if (other := first.setdefault(label_table.key(path), path)) != path:
            raise UserError(f"images {path!a} and {other!a}: the same name in NFC; rename one")
    if others:
        _note(top, others, "as they are no images in class folders")
    return LabelTable(root, paths, classes, [], {})


def _note(folder: Path, left_out: Sequence[str], why: str) -> None:
    first = sorted(left_out, key=lambda name: not name.endswith("/"))  # whole folders
    shown = ", ".join(map(repr, first[:3])) + (", ..." if len(left_out) > 3 else "")
    _log.warning("%s: %d left out, %s: %s", folder, len(left_out), why, shown)


def tables_in(folder: Path) -> str:
    """Hint for a message: the tables in a folder without classes, or with one, may be meant."""
    names = sorted(path.name for path in folder.glob("*.[ct]sv"))
    return f", or one of the tables there: {', '.join(map(repr, names))}" if names else ""


def images_below(folder: Path) -> list[str]:
    """Paths of the images below a folder of any layout, relative to it, in order. Raises UserError
    for a link that leads nowhere, or a name that is not UTF-8."""
    return sorted(filter(is_image, _files(folder, "", _above(folder))))


def is_flat(folder: Path) -> bool:
    """True for a folder with images, but without folders or Hugging Face's table."""
    table = label_table.is_metadata(folder / label_table.METADATA)
    return bool(images_below(folder)) and not table and not _names(folder, folders=True)


def _names(folder: Path, *, folders: bool) -> list[str]:
    """Visible folders, or else files, in a folder, in order."""
    return [entry.name for entry in _entries(folder) if entry.is_dir() == folders]


def _files(folder: Path, prefix: str, seen: set[Path]) -> Iterator[str]:
    """Paths of all files below a folder, after a prefix. Folders that were ``seen`` are not entered
    again: links may lead back, or to one folder in billions of ways."""
    if (real := Path(os.path.realpath(folder))) in seen:
        return
    seen.add(real)
    for entry in _entries(folder):
        path = prefix + entry.name
        if entry.is_dir():
            yield from _files(folder / entry.name, f"{path}/", seen)
        else:
            yield path


def _above(folder: Path) -> set[Path]:
    return {*Path(os.path.realpath(folder)).parents}


def _entries(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as unordered:
            entries = sorted(unordered, key=lambda entry: entry.name)
    except OSError as error:
        raise UserError(f"folder {str(folder)!r}: {error.strerror or error}") from None
    visible = [entry for entry in entries if not is_hidden(entry.name)]
    for entry in visible:
        if not files.is_utf8(entry.name):
            raise UserError(f"file {entry.path!r}: expected a name in UTF-8")
        if entry.is_symlink() and not os.path.exists(entry.path):
            raise UserError(f"image {entry.path!r}: a link that leads nowhere, expected a file")
    return visible
