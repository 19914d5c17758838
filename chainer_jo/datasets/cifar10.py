"""CIFAR-10 from the official python archive, downloaded or given, or from its unpacked folder."""

from __future__ import annotations

import hashlib
import pickle
import tarfile
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np
from chainer.dataset import download

from chainer_jo.datasets.array_cache import decoded_once
from chainer_jo.datasets.image_data import ImageData
from chainer_jo.errors import UserError

NAME = "cifar10"
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
MD5 = "c58f30108f718f92721af3b95e74349a"
FOLDER = "cifar-10-batches-py"  # what the archive unpacks to

_TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = ("test_batch",)
_META = "batches.meta"
_FILES = (*_TRAIN, *_TEST, _META)
_SHAPE = (3, 32, 32)  # of an image in the files


def load() -> ImageData:
    """50,000 training and 10,000 test images, (32, 32, 3); downloaded (170 MB) the first time.

    Raises UserError if the download fails, or another file comes.
    """
    return decoded_once(NAME, MD5, lambda: _from_archive(_downloaded()))


def load_archive(path: Path) -> ImageData:
    """The same from a copy of the archive; UserError unless it is the official one, whole."""
    _check(path)
    return decoded_once(NAME, MD5, lambda: _from_archive(path))


def load_folder(path: Path) -> ImageData:
    """The same from the unpacked archive; UserError if a file is missing or damaged."""
    return _assemble(_folder_files(path), str(path))


def is_unpacked(path: Path) -> bool:
    """Whether the folder looks like the unpacked archive, complete or not."""
    return any((path / name).is_file() for name in _FILES)


def _downloaded() -> Path:
    """The archive in Chainer's download cache."""
    try:
        path = Path(download.cached_download(URL))
    except (OSError, HTTPException) as error:
        raise UserError(
            f"download of {URL}: {error}, expected a connection, and {download.get_dataset_root()} "
            "to be writable (CHAINER_DATASET_ROOT names another place); or the file with --data"
        ) from error
    try:
        _check(path)
    except UserError:
        path.unlink()  # the next call downloads it again
        raise
    return path


def _check(path: Path) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "md5").hexdigest()
    if found != MD5:
        raise UserError(
            f"CIFAR-10 archive {str(path)!r}: md5 {found}, expected {MD5}; "
            "it is damaged, or not the official one"
        )


def _from_archive(path: Path) -> ImageData:
    return _assemble(_archive_files(path), str(path))


def _archive_files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:  # in the archive's order: going back means decompressing again
            if member.isfile():
                yield PurePosixPath(member.name).name, archive.extractfile(member)


def _folder_files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    for name in _FILES:
        if (path / name).is_file():
            with open(path / name, "rb") as file:
                yield name, file


def _assemble(files: Iterable[tuple[str, IO[bytes]]], place: str) -> ImageData:
    contents = {}
    for name, file in files:
        if name in _FILES:
            try:
                contents[name] = _content(name, file)
            except Exception as error:  # a damaged pickle can raise anything
                raise UserError(
                    f"CIFAR-10 in {place!r}: {name} cannot be read ({error}), expected as published"
                ) from error
    missing = [name for name in _FILES if name not in contents]
    if missing:
        raise UserError(f"CIFAR-10 in {place!r}: {missing[0]} is missing, expected {_FILES}")
    train_images, train_labels = map(np.concatenate, zip(*map(contents.get, _TRAIN), strict=True))
    test_images, test_labels = contents[_TEST[0]]
    return ImageData(NAME, train_images, train_labels, test_images, test_labels, contents[_META])


def _content(name: str, file: IO[bytes]) -> tuple:
    """Class names from the file that has them; images (n, h, w, c) and labels from the others."""
    content = _RestrictedUnpickler(file, encoding="latin-1").load()
    if name == _META:
        return tuple(str(class_name) for class_name in content["label_names"])
    pixels = content["data"].reshape(-1, *_SHAPE)
    return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)), np.array(content["labels"], np.int32)


class _RestrictedUnpickler(pickle.Unpickler):
    """Builds NumPy arrays beside dicts, lists, strings and numbers, and nothing else."""

    _reconstruct = np.empty(0).__reduce__()[0]
    _allowed = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        # A copy of the folder that NumPy 2 has written.
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self._allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self._allowed[module, name]
