"""Data set of --data, by name or by path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from chainer_jo import files
from chainer_jo.data import cifar10, clothing1m, digits, image_folder
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.data.tar_members import DAMAGED, open_tar
from chainer_jo.errors import UserError

#: Functions that load a data set, by name. Add your own under a new name.
DATA_SETS: dict[str, Callable[[], LabelledData]] = {
    digits.NAME: digits.load,
    cifar10.NAME: cifar10.load,
}
CIFAR10_JPEG = "cifar10-jpeg"
TAR_ENDING = re.compile(r"\.(tar(\.\w+)?|t[a-z]z2?)$", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """Name of a data set, and the function that loads it."""

    name: str
    load: Callable[[], LabelledData]


def find(spec: str) -> Source:
    """Source for a name in `DATA_SETS` ('cifar10' is downloaded when loaded) or for a path.

    'cifar10-jpeg' is a name, too, if nothing has to be loaded. A folder or tar of images is named
    after its file name, without endings.

    Raises UserError if there is no such name or path, or for a path of another kind.
    """
    if spec in DATA_SETS:
        return Source(spec, DATA_SETS[spec])
    path = files.expanded(spec)
    if spec == CIFAR10_JPEG and not path.exists():
        return Source(spec, _cannot_download)
    try:
        return _in_folder(path) if path.is_dir() else _in_archive(path)
    except OSError as error:
        raise UserError(
            f"data {spec!r}: {error.strerror or error}, expected {_expected()}"
        ) from error


def _expected() -> str:
    return (
        f"{', '.join(map(repr, DATA_SETS))}, or a path to the official CIFAR-10 python archive, "
        "its unpacked folder, or a folder or tar of images in train/<class>/ and test/<class>/"
    )


def _cannot_download() -> LabelledData:
    raise UserError(
        f"data {CIFAR10_JPEG!r}: expected its path; make it by tools/cifar10_jpeg.py from the "
        "official archive"
    )


def _in_folder(path: Path) -> Source:
    for folder in (path, path / cifar10.FOLDER):
        if cifar10.is_unpacked(folder):
            return Source(cifar10.NAME, partial(cifar10.load_folder, folder))
    if any((path / part).is_dir() for part in image_folder.PARTS):
        return _images(path, path.name)
    raise UserError(f"data {str(path)!r}: an unknown folder, expected {_expected()}")


def _in_archive(path: Path) -> Source:
    try:
        with open_tar(path) as archive:
            first = archive.next()
    except DAMAGED as error:
        raise UserError(
            f"data {str(path)!r}: not a tar, or damaged; expected {_expected()}"
        ) from error
    if first is not None and cifar10.FOLDER in PurePosixPath(first.name).parts:
        return Source(cifar10.NAME, partial(cifar10.load_archive, path))
    return _images(path, TAR_ENDING.sub("", path.name))


def _images(path: Path, stem: str) -> Source:
    # Images called "cifar10" are not the official ones, and their results must not pass for those.
    name = f"{stem}-images".lstrip("-") if stem in ("", clothing1m.NAME, *DATA_SETS) else stem
    return Source(name, partial(image_folder.load, path, name))
