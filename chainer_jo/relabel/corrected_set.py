"""A data set with corrected labels in the form it came in, its images linked to or copied."""

from __future__ import annotations

import csv
import itertools
import os
import shutil
import unicodedata
from pathlib import Path, PurePosixPath

import numpy as np

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.relabel.corrected_labels import CorrectedLabels, renamed
from chainer_jo.relabel.label_table import LABEL, PATH
from chainer_jo.relabel.labelled_images import LabelledImages, LabelledSets


def write(
    labels: CorrectedLabels,
    sets: LabelledSets,
    destination: Path,
    copy: bool,
    drop_unsure: bool = False,
) -> None:
    """Writes the set to a new folder; the source is only read.

    A table becomes ``labels.csv`` with the images beside it under their paths. Class
    folders become class folders, with those of the source's other parts as they were.

    Parameters
    ----------
    sets : of which `labels` corrects the training part.
    copy : whether images are copied; else they are linked to where that works.
    drop_unsure : whether to leave out the images of `CorrectedLabels.unsure`.

    Raises
    ------
    UserError
        if the folder has something in it, lies in the source, or cannot be written.
    """
    images = labels.images
    source = images.root
    if images.lines is None and destination.resolve().is_relative_to(source.resolve()):
        raise UserError(f"folder {str(destination)!r}: lies in the data, expected one elsewhere")
    position = _class_position(images)
    kept = ~labels.unsure if drop_unsure else np.ones(len(images), bool)
    end = Path(os.path.realpath(destination))
    with files.new_folder(destination) as whole:

        def place(path: str, target: str) -> None:
            _place(source / path, whole / target, None if copy else end / target)

        if position is None:
            for i in np.flatnonzero(kept):
                place(images.paths[i], images.paths[i])
            _write_table(labels, kept, whole / "labels.csv")
            return
        targets = _in_class_folders(labels, position)
        for i in np.flatnonzero(kept):
            place(images.paths[i], targets[i])
        for path in sets.others:
            place(path, path)


def _class_position(images: LabelledImages) -> int | None:
    """Which part of every path is its class: the first, or below a part of the set the second; None
    if the images are not in class folders."""
    if images.lines is not None:
        return None
    classes = [images.class_names[k] for k in images.labels]
    parts = [PurePosixPath(unicodedata.normalize("NFC", path)).parts for path in images.paths]
    for position in (0, 1):
        if all(p[position : position + 1] == (c,) for p, c in zip(parts, classes, strict=True)):
            return position
    return None


def _in_class_folders(labels: CorrectedLabels, position: int) -> list[str]:
    """Where each image goes. If two classes have images of one name that meet in a class now, that
    which was moved has its old class in its name."""
    names = labels.images.class_names
    folders = list(names)  # an accent in them may be encoded otherwise
    for path, given in zip(labels.images.paths, labels.errors.given, strict=True):
        folders[given] = PurePosixPath(path).parts[position]
    taken = set(labels.images.paths)
    targets = []
    for path, given, new in zip(labels.images.paths, labels.errors.given, labels.new, strict=True):
        if given == new:
            targets.append(path)
            continue
        place = PurePosixPath(path)
        parts = list(place.parts)
        parts[position] = folders[new]
        target, number = "/".join(parts), 1
        while target in taken:
            again = f" {number}" if number > 1 else ""
            parts[-1] = f"{place.stem} ({names[given]}{again}){place.suffix}"
            target, number = "/".join(parts), number + 1
        taken.add(target)
        targets.append(target)
    return targets


def _place(source: Path, target: Path, end: Path | None) -> None:
    """Copies an image, or links to it so that the link works where it ends up: relative, for both
    folders may be moved together, or be seen from a container."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if end is not None:
        try:
            os.symlink(os.path.relpath(source.resolve(), end.parent), target)
            return
        except OSError:  # a file system without links
            if target.is_symlink():
                raise
    shutil.copyfile(source, target)


def _write_table(labels: CorrectedLabels, kept: np.ndarray, path: Path) -> None:
    images = labels.images
    with open(path, "w", newline="", encoding="utf-8") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([PATH, LABEL, *renamed(images.columns, (PATH, LABEL))])
        names = (images.class_names[k] for k in labels.new)
        rows = zip(images.paths, names, *images.columns.values(), strict=True)
        writer.writerows(itertools.compress(rows, kept))
