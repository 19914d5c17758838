"""Images of a user with noisy labels: class folders, tars and tables."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo import files
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import UNKNOWN, as_keys, by_value, check_columns, digest_keys
from chainer_jo.data.source import TAR_ENDING
from chainer_jo.data.tar_members import is_tar
from chainer_jo.data.unpacked_tar import unpack
from chainer_jo.errors import UserError
from chainer_jo.relabel.read import class_folders, label_table
from chainer_jo.relabel.read.label_table import LABEL, PATH, USUAL, LabelTable, TableForm

EXPECTED = (
    "a folder or tar of class folders (with or without train/ and test/), or a CSV or TSV with "
    "columns 'path' and 'label'"
)
#: Uses of sets with correct labels.
HELD_OUT: tuple[str, ...] = ("validation", "test")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """One set of images, n files.

    Attributes
    ----------
    source : name of the set in the user's command.
    root : folder that the paths are below; of a tar, the folder it was unpacked to.
    paths : of the images below `root`, with "/", each once.
    given : int32 (n,), indices into `class_names`: noisy labels to be corrected, correct ones of a
        held-out set; or (n, m), m labels an image, UNKNOWN (-1) for an empty cell.
    class_names : at least two; the same for all sets that belong together.
    columns : further columns of the table, n strings by the column's name.
    sizes : int64 (n,), of the files in bytes.
    lines : line of each image in the table, from 1; empty if there is no table.
    label_columns : names of the m columns; empty for one label an image.
    header : names of the table's columns of paths and of labels.
    """

    source: str
    root: Path
    paths: np.ndarray
    given: np.ndarray
    class_names: tuple[str, ...]
    columns: dict[str, list[str]]
    sizes: np.ndarray
    lines: list[int]
    label_columns: tuple[str, ...] = ()
    header: tuple[str, str] = (PATH, LABEL)

    def __len__(self) -> int:
        return len(self.paths)

    def files(self, rows: Any = slice(None)) -> list[str]:
        """Paths of the images of these rows, or of all."""
        return [f"{self.root}/{path}" for path in self.paths[rows]]

    def show(self, i: int) -> str:
        """Name of an image in messages."""
        return f"{self.paths[i]!r}" + (f" (line {self.lines[i]})" if self.lines else "")

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of paths, sizes of files, labels and class names; the same for a
        copy elsewhere, so that results stay valid."""
        digest = hashlib.sha256("\0".join(self.class_names).encode())
        digest_keys(self.paths, digest)
        for array in (self.given.T, self.sizes):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class LabelledSets:
    """Images whose labels are to be corrected, and held-out sets with correct labels.

    Attributes
    ----------
    held_out : held-out sets with correct labels, by their use, "validation" or "test".
    others : paths below `train.root` of the source's other parts; also of parts that another set
        has replaced.
    """

    train: LabelledImages
    held_out: dict[str, LabelledImages]
    others: np.ndarray

    @property
    def by_use(self) -> dict[str, LabelledImages]:
        """All sets; the use of the images to be corrected is "train"."""
        return {"train": self.train, **self.held_out}


def read_sets(
    data: str, validation: str | None = None, test: str | None = None, form: TableForm = USUAL
) -> LabelledSets:
    """Reads the images that `data` names, see `EXPECTED`; nothing is written there.

    Parameters
    ----------
    validation, test : images with correct labels; they replace such parts of `data`.
    form : of the table that `data` may be; the others may have the usual columns, too.

    Raises UserError for nothing of these forms, files that are not there, fewer than two classes,
    classes that no training image has, or images that are in two sets.
    """
    found = _find(data, form)
    others = [path for use, (_, part) in found.items() if use != "train" for path in part.paths]
    for use, spec in zip(HELD_OUT, (validation, test), strict=True):
        if spec is not None:
            other = _find(spec, form.or_usual())
            if len(other) > 1:
                raise UserError(f"--{use} {spec!r}: has parts of its own, expected one set")
            found[use] = other["train"]
    table = found["train"][1]
    named = set(table.labels).union(*table.votes.values()) - {""}
    classes = tuple(sorted(named, key=by_value))
    if len(classes) < 2:
        tables = class_folders.tables_in(files.expanded(data))
        raise UserError(f"data {data!r}: 1 class ({classes[0]!r}), expected at least two{tables}")
    numbers = (name for name in classes if name.lstrip("-").isdecimal())
    if same := next((name for name in numbers if f"{name}.0" in named), None):  # as pandas writes
        both = f"classes {same!r} and '{same}.0' are one number"
        raise UserError(f"data {data!r}: {both}, expected one spelling")
    sets = {use: _numbered(*each, classes) for use, each in found.items()}
    if len(sets) > 1:
        _check_files_apart(f"data {data!r}", sets)
    held_out = {use: sets[use] for use in HELD_OUT if use in sets}
    return LabelledSets(sets["train"], held_out, as_keys(others))


def labels_of(
    file: str, images: LabelledImages, form: TableForm = USUAL, *, others: bool = False
) -> np.ndarray:
    """Labels int32 (n,) of the images in a table of this form, or of the usual one; UNKNOWN (-1)
    for images that are not in it. With ``others``, a class that no image has becomes the number of
    the classes, with a warning.

    Raises UserError if it is no such table, has none of the images, or another class.
    """
    table = label_table.read(file, replace(form.or_usual(), root=str(images.root)))
    row_of = {label_table.key(path): i for i, path in enumerate(images.paths)}
    index = {name: k for k, name in enumerate(images.class_names)}
    unknown, missing = Problems(), Problems()
    labels = np.full(len(images), UNKNOWN, np.int32)
    for path, label, line in zip(table.paths, table.labels, table.lines, strict=True):
        if (row := row_of.get(label_table.key(path))) is None:
            missing.add("no such image", f"line {line}, {path!r}")
            continue
        if label not in index:
            known = ", ".join(images.class_names[:5]) + ", ..." * (len(index) > 5)
            expected = "" if others else f", expected one of {known}"
            unknown.add(f"a class that the images do not have{expected}", f"line {line}, {label!r}")
        labels[row] = index.get(label, len(index))
    if not others:
        unknown.raise_if_any(f"data {file!r}")
    if (labels == UNKNOWN).all():
        raise UserError(
            f"data {file!r}: no image of {images.source!r}, expected paths such as "
            f"{images.paths[0]!r}, found such as {table.paths[0]!r}"
        )
    for note in (*unknown.lines(), *missing.lines()):
        _log.warning("%s: %s", file, note)
    return labels


def _numbered(source: str, table: LabelTable, class_names: tuple[str, ...]) -> LabelledImages:
    """The images of a table. Raises UserError for other classes, and files that are not there."""
    index = {name: k for k, name in enumerate(class_names)}
    columns = [
        np.array([index.get(name, UNKNOWN) for name in names], np.int32)
        for names in table.votes.values() or [table.labels]
    ]
    images = LabelledImages(
        source,
        table.root,
        as_keys(table.paths),
        np.stack(columns, axis=1) if table.votes else columns[0],
        class_names,
        table.columns,
        np.zeros(len(table.paths), np.int64),
        table.lines,
        tuple(table.votes),
        table.header,
    )
    problems = Problems()
    for i, (file, label) in enumerate(zip(images.files(), table.labels, strict=True)):
        if label not in index:
            problems.add("a class that no training image has", f"{label!r}, {images.show(i)}")
        try:
            status = os.stat(file)
        except OSError as error:
            hint = ", expected / in the place of \\" if "\\" in file else ""
            problems.add(f"image: {error.strerror}{hint}", images.show(i))
        else:
            if not stat.S_ISREG(status.st_mode):
                problems.add("image: not a file", images.show(i))
            images.sizes[i] = status.st_size
    problems.raise_if_any(f"data {source!r}")
    if table.votes:
        check_columns(f"--label-columns {','.join(table.votes)}", images.given)
    return images


def _find(spec: str, form: TableForm) -> dict[str, tuple[str, LabelTable]]:
    """Sets that a path names, and their sources, by their use; `train` is always among them."""
    path = files.expanded(spec)
    if path.is_dir():
        return _in_folder(spec, path, form)
    if not os.path.exists(path):
        raise UserError(f"data {spec!r}: no such file or folder, expected {EXPECTED}")
    try:
        if is_tar(path):
            return _in_folder(spec, unpack(path), form)
        if TAR_ENDING.search(path.name) or zipfile.is_zipfile(path):
            raise UserError(f"data {spec!r}: not a tar, or damaged; expected {EXPECTED}")
    except OSError as error:
        raise UserError(f"data {spec!r}: {error.strerror or error}, expected {EXPECTED}") from None
    return {"train": (spec, label_table.read(path, form))}


def _in_folder(spec: str, root: Path, form: TableForm) -> dict[str, tuple[str, LabelTable]]:
    if label_table.is_metadata(root / label_table.METADATA):
        return {"train": (spec, label_table.read(root / label_table.METADATA, form))}
    for name in class_folders.PARTS:
        if label_table.is_metadata(root / name / label_table.METADATA):
            raise UserError(
                f"data {spec!r}: each part has a table of its own ({name}/{label_table.METADATA}), "
                "expected the folder of the training part, others with --validation and --test"
            )
    parts = class_folders.parts(root) or {"train": ""}
    return {use: (spec, class_folders.images(root, below)) for use, below in parts.items()}


def _check_files_apart(where: str, sets: Mapping[str, LabelledImages]) -> None:
    """Raises UserError for a file that two sets have, by its own path or by a link."""
    owner: dict[str, tuple[str, str]] = {}
    for use, images in sets.items():
        for file in images.files():
            first, path = owner.setdefault(os.path.realpath(file), (use, file))
            if first != use:
                shown = f"{file!r} is in the {first} and in the {use} set"
                shown += f" (there {path!r})" * (path != file)
                raise UserError(f"{where}: {shown}, expected each image in one")


def check_apart(where: str, names: Mapping[str, Iterable[str]]) -> None:
    """Raises UserError for a name that images of two sets have; ``names`` by the sets' use."""
    owner: dict[str, str] = {}
    for use, each in names.items():
        for name in each:
            if (other := owner.setdefault(name, use)) != use:
                shown = f"{name!r} is in the {other} and in the {use} set"
                raise UserError(f"{where}: {shown}, expected each image in one")
