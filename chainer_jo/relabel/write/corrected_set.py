"""Writes a data set with corrected labels in the form of the source, with links to its images."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from itertools import compress
from pathlib import Path, PurePosixPath

import numpy as np

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import FILE_NAME, METADATA
from chainer_jo.relabel.read.labelled_images import LabelledSets
from chainer_jo.relabel.write.label_files import renamed


def write(
    labels: CorrectedLabels,
    sets: LabelledSets,
    destination: Path,
    copy: bool,
    drop_unsure: bool = False,
) -> None:
    """Writes the set to a new folder; the source, ``sets``, is only read.

    A table becomes ``labels.csv`` (Hugging Face's ``metadata.csv``), with its names of columns and
    the images beside it under their paths. Class folders become class folders, as do the source's
    other parts, unchanged. Images are copied, or linked to where the file system has links. Raises
    UserError if the folder is not empty, or cannot be written.
    """
    images = labels.images
    kept = ~(labels.unsure & drop_unsure)
    targets = images.paths if images.lines else _in_class_folders(labels)
    placed = [*compress(zip(images.paths, targets, strict=True), kept)]
    placed += [(path, path) for path in sets.others]
    end = Path(os.path.realpath(destination))
    with files.new_folder(destination) as whole:
        for path, target in placed:
            _place(images.root / path, whole / target, None if copy else end / target)
        if images.lines:
            hugging_face = images.header[0].casefold() == FILE_NAME
            _write_table(labels, kept, whole / (METADATA if hugging_face else "labels.csv"))


def _in_class_folders(labels: CorrectedLabels) -> list[str]:
    """New paths of the images. If images of one name from two classes meet in a class, the moved
    image has its old class in its name."""
    names, paths, given = labels.images.class_names, labels.images.paths, labels.errors.given
    # The class is the first folder of every path, or the second where all are in one, of a part.
    position = int(len({path.partition("/")[0] for path in paths}) == 1)
    folders = list(names)  # an accent in them may be encoded otherwise
    for path, label in zip(paths, given, strict=True):
        folders[label] = path.split("/")[position]
    taken = set(map(_place_of, paths))
    targets = list(paths)
    for i in np.flatnonzero(labels.changed):
        place, parts = PurePosixPath(paths[i]), paths[i].split("/")
        parts[position] = folders[labels.new[i]]
        number = 1
        while _place_of("/".join(parts)) in taken:
            again = f" {number}" if number > 1 else ""
            end = f" ({names[given[i]]}{again}){place.suffix}"
            stem = place.stem.encode()[: max(0, 255 - len(end.encode()))]  # of a name's bytes
            parts[-1] = stem.decode(errors="ignore") + end
            number += 1
        targets[i] = "/".join(parts)
        taken.add(_place_of(targets[i]))
    return targets


def _place_of(path: str) -> str:
    """A key that is equal for paths that some file system cannot tell apart: by case, say."""
    return label_table.key(path).casefold()


def _place(source: Path, target: Path, end: Path | None) -> None:
    """Copies an image, or links to it from its final place ``end``: by a relative path, as both
    folders may be moved together, or be mounted in a container."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if end is not None:
        try:
            os.symlink(os.path.relpath(source.resolve(), end.parent), target)
            return
        except OSError:  # a file system without links
            if target.is_symlink():
                raise
    try:
        with files.opened(source) as image, open(target, "xb") as copy:  # none is written over
            shutil.copyfileobj(image, copy)
    except OSError as error:
        if error.filename == str(source):
            raise UserError(f"image {str(source)!r}: {error.strerror}") from None
        raise


def _write_table(labels: CorrectedLabels, kept: np.ndarray, path: Path) -> None:
    images = labels.images
    names = (images.class_names[k] for k in labels.new)
    path_name, label_name = images.header
    columns: dict[str, Iterable] = {path_name: images.paths, label_name: names}
    columns |= renamed(images.columns, images.header)
    if os.path.lexists(path):  # an image, or a link to one
        raise UserError(f"image {path.name!r}: expected another name, as the table is called so")
    with open(path, "x", newline="", encoding="utf-8") as text:
        label_table.write(text, {name: compress(columns[name], kept) for name in columns})
