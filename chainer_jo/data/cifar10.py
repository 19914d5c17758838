"""CIFAR-10 from the official python archive, downloaded or given, or from its unpacked folder."""

from __future__ import annotations

import hashlib
import io
import pickle
import pickletools
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from chainer_jo.data.array_cache import decoded_once
from chainer_jo.data.labelled_data import LabelledData, clean_data
from chainer_jo.errors import UserError
from chainer_jo.files import is_utf8, opened

NAME = "cifar10"
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
MD5 = "c58f30108f718f92721af3b95e74349a"
FINGERPRINT = "a258ea3325a20808"  # of the images, labels and class names in it
FOLDER = "cifar-10-batches-py"  # what the archive unpacks to

_TRAIN = tuple(f"data_batch_{i}" for i in range(1, 6))
_TEST = ("test_batch",)
_META = "batches.meta"
_FILES = (*_TRAIN, *_TEST, _META)
_SHAPE = (3, 32, 32)  # of an image in the files
#: Instructions of pickles of protocols 2 to 5, as the official files and NumPy's have them, and the
#: most of them in a file; an official one has 90,152.
_INSTRUCTIONS = re.compile(
    "PROTO|FRAME|STOP|MARK|MEMOIZE|NONE|NEW(TRUE|FALSE)|BININT[12]?|LONG1|REDUCE|BUILD|BYTEARRAY8|"
    "(LONG_)?BIN(PUT|GET)|(SHORT_)?BIN(STRING|UNICODE|BYTES)|(STACK_)?GLOBAL|TUPLE[123]?|"
    "EMPTY_(DICT|LIST|TUPLE)|SETITEMS?|APPENDS?"
)
_MOST, _MOST_TUPLES = 200_000, 20_000


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
    """CIFAR-10 from the unpacked archive; UserError if a file is missing or damaged. Content other
    than the official one is named ``cifar10-<start of the fingerprint>``."""
    return _assemble(_folder_files(path), str(path))


def is_unpacked(path: Path) -> bool:
    """True if the folder has a file of the unpacked archive."""
    return any((path / name).is_file() for name in _FILES)


def _downloaded() -> Path:
    """Downloaded archive in Chainer's cache."""
    from chainer.dataset import download  # loads Chainer

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
    for name in _FILES:
        if (path / name).is_file():
            with open(path / name, "rb") as file:
                yield name, file


def _assemble(files: Iterable[tuple[str, IO[bytes]]], place: str) -> LabelledData:
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
    train_images, true_labels = map(np.concatenate, zip(*map(contents.get, _TRAIN), strict=True))
    test_images, test_labels = contents[_TEST[0]]
    data = clean_data(NAME, train_images, true_labels, test_images, test_labels, contents[_META])
    fingerprint = data.fingerprint()
    return data if fingerprint == FINGERPRINT else replace(data, name=f"{NAME}-{fingerprint[:8]}")


def _content(name: str, file: IO[bytes]) -> tuple:
    """Class names from the file that has them; images (n, h, w, c) and labels from the others."""
    raw = file.read(1 << (16 if name == _META else 26))  # twice what an official one has, and more
    tuples = 0
    for number, (opcode, argument, _) in enumerate(pickletools.genops(raw)):
        tuples += opcode.name.startswith("TUPLE")
        if not _INSTRUCTIONS.fullmatch(opcode.name) or number > _MOST or tuples > _MOST_TUPLES:
            raise ValueError(f"instruction {number:,} is {opcode.name}")
        # Room is made for as many objects; a dictionary looks for long numbers one by one.
        limit = len(raw) if opcode.name.endswith("PUT") else 1 << 63
        if type(argument) is int and argument > limit:
            raise ValueError(f"it cannot have {argument:,} objects")
    unpickled = RestrictedUnpickler(io.BytesIO(raw), encoding="latin-1").load()
    content = {text_of(key): value for key, value in unpickled.items()}
    if name == _META:
        names = tuple(map(text_of, content["label_names"]))
        if not all(map(is_utf8, names)):
            raise ValueError("class names that are not UTF-8")
        return names
    labels = np.frombuffer(bytes(list(content["labels"])), np.uint8).astype(np.int32)
    planes = np.frombuffer(bytes_of(content["data"]), np.uint8)
    return np.ascontiguousarray(planes.reshape(len(labels), *_SHAPE).transpose(0, 2, 3, 1)), labels


def bytes_of(array: ArrayCall) -> bytes:
    """Bytes of a pickled array. Raises ValueError if they are not stored row by row."""
    match array.arguments:
        case ((1, _, _, False, values),) | (values, _, _, "C"):  # a state, or protocol 5's buffer
            return text_of(values).encode("latin-1")
    raise ValueError("its values are not stored row by row")


def text_of(value: str | bytes | ArrayCall) -> str:
    """Text of a string or of Latin-1 bytes, also of bytes pickled for Python 2 by `encode`."""
    text, _ = value.arguments if isinstance(value, ArrayCall) else (value, None)
    return text if isinstance(text, str) else text.decode("latin-1")


class ArrayCall:
    """Substitute for the functions that build arrays from a pickle; keeps their arguments. NumPy's
    own would trust these: pointers to objects, or an array larger than the memory."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    __setstate__ = __init__


class RestrictedUnpickler(pickle.Unpickler):
    """Builds dicts, lists, strings and numbers, and keeps the arguments of arrays."""

    _array_functions = {
        *(("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")),
        *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
        *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    }

    def find_class(self, module: str, name: str) -> type[ArrayCall]:
        if (module, name) not in self._array_functions:
            raise pickle.UnpicklingError(f"it asks for {f'{module}.{name}'!r}")
        return ArrayCall
