"""Images of a user with noisy labels: class folders, tars and tables."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import UNKNOWN, as_keys, by_value, digest_keys
from chainer_jo.data.source import TAR_ENDING
from chainer_jo.data.tar_members import is_tar
from chainer_jo.data.unpacked_tar import unpack
from chainer_jo.errors import UserError
from chainer_jo.relabel.judge.label_noise import majority
from chainer_jo.relabel.read import class_folders, label_table
from chainer_jo.relabel.read.label_table import USUAL, LabelTable, TableForm

EXPECTED = (
    "a folder or tar of class folders (with or without train/ and test/), or a CSV or TSV with "
    "columns 'path' and 'label'"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """One set of images, n files.

    Attributes
    ----------
    source : name of the set in the user's command.
    root : folder that the paths are below; of a tar, the folder it was unpacked to.
    paths : of the images below `root`, with "/", each once.
    labels : int32 (n,), indices into `class_names`, as given: noisy ones to be corrected, correct
        ones of a held-out set.
    class_names : at least two; the same for all sets that belong together.
    columns : further columns of the table, n strings by the column's name.
    sizes : int64 (n,), of the files in bytes.
    lines : int32 (n,), line of each image in the table, from 1; None if there is no table.
    votes : int32 (n,) by label column, UNKNOWN (-1) for an empty cell, if images have several
        labels, whose majority `labels` then are; else empty.
    """

    source: str
    root: Path
    paths: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    columns: dict[str, list[str]]
    sizes: np.ndarray
    lines: np.ndarray | None = None
    votes: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def given(self) -> np.ndarray:
        """The labels as they are judged: int32 (n,), or (n, m) for m label columns."""
        return np.stack(list(self.votes.values()), axis=1) if self.votes else self.labels

    def __len__(self) -> int:
        return len(self.labels)

    def files(self, indices: Sequence[int] | np.ndarray | None = None) -> list[str]:
        """Paths of the images of these indices, or of all."""
        indices = range(len(self)) if indices is None else indices
        return [f"{self.root}/{self.paths[i]}" for i in indices]

    def show(self, i: int) -> str:
        """Name of an image in messages."""
        line = "" if self.lines is None else f" (line {self.lines[i]})"
        return f"{self.paths[i]!r}{line}"

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of paths, sizes of files, labels and class names.

        A copy elsewhere is the same data, so that results computed from it stay valid.
        """
        digest = hashlib.sha256("\0".join(self.class_names).encode())
        digest_keys(self.paths, digest)
        for array in (*(self.votes.values() or [self.labels]), self.sizes):
            digest.update(array.data)
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

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.train.class_names

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the sets, by their use."""
        return {use: images.fingerprint for use, images in self.by_use.items()}


def read_sets(
    data: str, validation: str | None = None, test: str | None = None, form: TableForm = USUAL
) -> LabelledSets:
    """Reads the images that `data` names, see `EXPECTED`; nothing is written there.

    Parameters
    ----------
    validation, test : images with correct labels, in the same forms; they replace such parts of
        `data`.
    form : of the table that `data` may be; the others may have the usual columns, too.

    Raises UserError, naming file, line and what was expected: nothing of these forms, files that
    are not there, fewer than two classes, classes that no training image has, images that are in
    two sets.
    """
    listings = _find(data, form)
    others = [path for use, (*_, part) in listings.items() if use != "train" for path in part.paths]
    for use, spec in (("validation", validation), ("test", test)):
        if spec is not None:
            other = _find(spec, form.or_usual())
            if len(other) > 1:
                raise UserError(f"--{use} {spec!r}: has parts of its own, expected one set")
            listings[use] = other["train"]
    table = listings["train"][-1]
    named = set(table.labels).union(*table.votes.values()) - {""}
    classes = tuple(sorted(named, key=by_value))
    if len(classes) < 2:
        tables = class_folders.tables_in(Path(data).expanduser())
        raise UserError(f"data {data!r}: 1 class ({classes[0]!r}), expected at least two{tables}")
    sets = {use: _numbered(listing, classes) for use, listing in listings.items()}
    _check_apart(sets)
    _note_single_images(sets["train"])
    uses = "validation", "test"
    held_out = {use: sets[use] for use in uses if use in sets}
    return LabelledSets(sets["train"], held_out, as_keys(others))


def labels_of(
    file: str, images: LabelledImages, form: TableForm = USUAL, *, others: bool = False
) -> np.ndarray:
    """Labels int32 (n,) of the images in a table of this form, or of the usual one; UNKNOWN (-1)
    for images that are not in it. With ``others``, classes that no image has lead to a warning
    only; the number of the classes stands for them.

    Raises UserError if it is no such table, has none of the images, or a class that is not
    accepted.
    """
    table = label_table.read(file, replace(form.or_usual(), root=str(images.root)))
    row_of = {label_table.key(path): i for i, path in enumerate(table.paths)}
    index = {name: k for k, name in enumerate(images.class_names)}
    problems = Problems()
    labels = np.full(len(images), UNKNOWN, np.int32)
    for i, path in enumerate(images.paths):
        if (row := row_of.get(label_table.key(path))) is None:
            continue
        label = table.labels[row]
        if label not in index:
            line = f"line {table.lines[row]}, {label!r}"
            problems.add("a class that the images do not have", line)
        labels[i] = index.get(label, len(index))
    if others:
        for line in problems.lines():
            _log.warning("%s: %s", file, line)
    else:
        problems.raise_if_any(f"data {file!r}")
    if (labels == UNKNOWN).all():
        raise UserError(
            f"data {file!r}: no image of {images.source!r}, expected paths such as "
            f"{images.paths[0]!r}, found such as {table.paths[0]!r}"
        )
    known, missing = set(map(label_table.key, images.paths)), Problems()
    for path, number in zip(table.paths, table.lines, strict=True):
        if label_table.key(path) not in known:
            missing.add("no such image", f"line {number}, {path!r}")
    for line in missing.lines():
        _log.warning("%s: %s", file, line)
    return labels


#: A set of images before its classes are numbered: its name in the command, the folder that its
#: paths are below, and its table.
_Listing = tuple[str, Path, LabelTable]


def _numbered(listing: _Listing, class_names: tuple[str, ...]) -> LabelledImages:
    """The images of a listing. Raises UserError for other classes, and files that are not there."""
    source, root, table = listing
    n, index = len(table.paths), {name: k for k, name in enumerate(class_names)}

    def codes(names: list[str]) -> np.ndarray:
        return np.fromiter((index.get(name, UNKNOWN) for name in names), np.int32, n)

    images = LabelledImages(
        source,
        root,
        as_keys(table.paths),
        codes(table.labels),
        class_names,
        table.columns,
        np.zeros(n, np.int64),
        np.array(table.lines, np.int32) if table.lines else None,
        {name: codes(names) for name, names in table.votes.items()},
    )
    problems = Problems()
    for i in np.flatnonzero(images.labels == UNKNOWN).tolist():
        name = table.labels[i]
        problems.add("a class that no training image has", f"{name!r}, {images.show(i)}")
    for i, path in enumerate(table.paths):
        try:
            status = os.stat(f"{root}/{path}")
        except OSError as error:
            hint = ", expected / in the place of \\" if "\\" in path else ""
            problems.add(f"image: {error.strerror}{hint}", images.show(i))
        else:
            if not stat.S_ISREG(status.st_mode):
                problems.add("image: not a file", images.show(i))
            images.sizes[i] = status.st_size
    problems.raise_if_any(f"data {source!r}")
    return replace(images, labels=majority(images.given))


def _find(spec: str, form: TableForm) -> dict[str, _Listing]:
    """Sets that a path names, by their use; `train` is always among them."""
    path = Path(os.path.abspath(os.path.expanduser(spec)))
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
    return {"train": _in_table(spec, path, form)}


def _in_table(spec: str, file: Path, form: TableForm) -> _Listing:
    table, root = label_table.read(file, form), form.folder(file)
    if not root.is_dir():  # from --images: the table's own folder exists
        expected = f"expected the one with {table.paths[0]!r}"
        raise UserError(f"--images {str(root)!r}: no such folder, {expected}")
    return spec, root, table


def _in_folder(spec: str, root: Path, form: TableForm) -> dict[str, _Listing]:
    if label_table.is_metadata(root / label_table.METADATA):
        return {"train": _in_table(spec, root / label_table.METADATA, form)}
    for name in class_folders.PARTS:
        if label_table.is_metadata(root / name / label_table.METADATA):
            raise UserError(
                f"data {spec!r}: each part has a table of its own ({name}/{label_table.METADATA}), "
                "expected the folder of the training part, others with --validation and --test"
            )
    parts = class_folders.parts(root) or {"train": ""}
    return {use: (spec, root, class_folders.images(root, parts[use])) for use in parts}


def _check_apart(sets: dict[str, LabelledImages]) -> None:
    owner: dict[str, str] = {}
    for use, images in sets.items():
        for i, file in enumerate(images.files()):
            if (other := owner.setdefault(file, use)) != use:
                raise UserError(
                    f"data {images.source!r}: {images.show(i)} is both in the {other} and in the "
                    f"{use} set, expected each image in one"
                )


def _note_single_images(images: LabelledImages) -> None:
    notes = Problems()
    for k in np.flatnonzero(np.bincount(images.labels, minlength=len(images.class_names)) == 1):
        only = images.show(int(np.flatnonzero(images.labels == k)[0]))
        notes.add("a class with one image", f"{images.class_names[k]!r}, {only}")
    for line in notes.lines():
        _log.warning("%s: %s", images.source, line)
