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

from chainer_jo.data.array_cache import cache, decoded_once
from chainer_jo.data.labelled_data import LabelledData, clean_data
from chainer_jo.errors import UserError, one_line
from chainer_jo.files import opened

NAME = "cifar10"
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
MD5 = "c58f30108f718f92721af3b95e74349a"
FOLDER = "cifar-10-batches-py"  # what the archive unpacks to

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
#: MD5 of each batch in the binary version: for every image a byte of its label, then its pixels.
_BATCHES = {
    "data_batch_1": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch": "803d5f7f4d78ea53de84dbe85f74fb6d",
}
_SHAPE = (3, 32, 32)  # of an image in the files


def load() -> LabelledData:
    """50,000 training and 10,000 test images, (32, 32, 3); downloaded (170 MB) the first time.

    Raises UserError if the download fails, or another file comes.
    """
    return decoded_once(NAME, MD5, lambda: _assemble(_archive_files(_downloaded()), URL))


def load_archive(path: Path) -> LabelledData:
    """CIFAR-10 from a copy of the archive; UserError unless it is the official one, whole."""
    _check(path)
    return decoded_once(NAME, MD5, lambda: _assemble(_archive_files(path), str(path)))


def load_folder(path: Path) -> LabelledData:
    """CIFAR-10 from the unpacked archive, or from copies of its batches in pickle's protocol 4;
    UserError if a batch is missing, damaged, or has other images or labels."""
    return _assemble(_folder_files(path), str(path))


def is_unpacked(path: Path) -> bool:
    """True if the folder has a file of the unpacked archive."""
    return any((path / name).is_file() for name in _BATCHES)


def _downloaded() -> Path:
    """Downloaded archive in Chainer's cache."""
    from chainer.dataset import download  # loads Chainer

    cache()  # Chainer's downloads are beside it
    try:
        path = Path(download.cached_download(URL))
    except (OSError, HTTPException) as error:
        raise UserError(
            f"download of {URL}: {error}, expected a connection and a writable folder "
            f"{download.get_dataset_root()}; set CHAINER_DATASET_ROOT to another folder, or give "
            "the file with --data"
        ) from error
    try:
        _check(path)
    except UserError:
        path.unlink()  # the next call downloads it again
        raise
    return path


def _check(path: Path) -> None:
    with opened(path) as file:
        md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 != MD5:
        raise UserError(
            f"CIFAR-10 archive {str(path)!r}: md5 {md5}, expected {MD5}; "
            "it is damaged, or not the official one"
        )


def _archive_files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:  # in the archive's order: going back means decompressing again
            if member.isfile() and (content := archive.extractfile(member)):
                yield PurePosixPath(member.name).name, content


def _folder_files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    for name in _BATCHES:
        if (path / name).is_file():
            with open(path / name, "rb") as file:
                yield name, file


def _assemble(files: Iterable[tuple[str, IO[bytes]]], place: str) -> LabelledData:
    batches = {}
    for name, file in files:
        if name in _BATCHES:
            try:
                batches[name] = _batch(file, _BATCHES[name])
            except Exception as error:  # a damaged pickle can raise anything
                raise UserError(
                    f"CIFAR-10 in {place!r}: {name} cannot be read ({one_line(error)}), expected "
                    "the official file; give images of your own as a folder of images"
                ) from error
    if missing := _BATCHES.keys() - batches:
        raise UserError(f"CIFAR-10 in {place!r}: {min(missing)} is missing, expected all batches")
    images, labels = zip(*(batches[name] for name in _BATCHES), strict=True)
    train = np.concatenate(images[:-1]), np.concatenate(labels[:-1])
    return clean_data(NAME, *train, images[-1], labels[-1], CLASSES)


def _batch(file: IO[bytes], md5: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, h, w, c) and labels of a batch; any exception for a damaged one, ValueError for
    another batch than the one with this MD5."""
    content = _Unpickler(file, encoding="latin-1").load()
    *_, values = content["data"].state
    values = values.encode("latin-1") if isinstance(values, str) else values
    labels = np.array(content["labels"], np.uint8)
    planes = np.frombuffer(values, np.uint8).reshape(len(labels), *_SHAPE)
    binary = np.column_stack([labels, planes.reshape(len(labels), -1)])
    if (found := hashlib.md5(binary.tobytes()).hexdigest()) != md5:
        raise ValueError(f"images and labels with md5 {found}, not {md5}")
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels.astype(np.int32)


class _Call:
    """Stands for whatever a pickle calls to make an object, such as an array; keeps its state."""

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: tuple) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Builds dicts, lists, strings and numbers; imports and calls nothing that a pickle names."""

    def find_class(self, module: str, name: str) -> type[_Call]:
        return _Call
