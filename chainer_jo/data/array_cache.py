"""A cache in Chainer's data set folder: decoded images, for example, which are memory-mapped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from chainer.dataset import download

from chainer_jo.data.image_data import ImageData
from chainer_jo.errors import UserError

_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_CLASS_NAMES, _FINGERPRINT = "class_names.json", "fingerprint"
Made = TypeVar("Made")


def cache() -> Path:
    """The folder that everything this package makes once is kept in."""
    return Path(download.get_dataset_root(), "chainer_jo")


def decoded_once(name: str, key: str, decode: Callable[[], ImageData]) -> ImageData:
    """The cached result of `decode`; see `made_once`."""
    return made_once(
        f"{name}-{key[:16]}", lambda folder: _write(decode(), folder), lambda f: _read(name, f)
    )


def made_once(name: str, write: Callable[[Path], None], read: Callable[[Path], Made]) -> Made:
    """The result of `read` on a folder of the cache. `write` fills the folder if it is not there.

    Processes that ask for the same at once make it once, and share its pages in memory.

    Parameters
    ----------
    name : of the folder; the same name promises the same content.
    write : fills an empty folder, which appears whole or not at all.
    read : raises an exception, whichever it is, if the folder is not there, or is damaged.

    Raises
    ------
    UserError
        if the cache folder cannot be written, and whatever `write` raises.
    """
    folder = cache() / name
    with contextlib.suppress(Exception):  # first without the lock: the place may be read-only
        return read(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(Exception):  # made by another process meanwhile
                return read(folder)
            _make(folder, write)
            return read(folder)
    except OSError as error:
        raise UserError(
            f"data cache {str(folder)!r}: {error.strerror or error}, expected to write there "
            "(CHAINER_DATASET_ROOT names another place)"
        ) from error


def _make(folder: Path, write: Callable[[Path], None]) -> None:
    """Write beside, then rename: the folder is whole or not there. The caller holds the lock."""
    beside = folder.with_name(f"{folder.name}.tmp")
    for leftover in (beside, folder):
        if leftover.exists():
            shutil.rmtree(leftover)
    beside.mkdir()
    try:
        write(beside)
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _read(name: str, folder: Path) -> ImageData:
    # As plain arrays: indexing numpy.memmap itself costs extra with every call.
    arrays = {n: np.load(folder / f"{n}.npy", mmap_mode="r").view(np.ndarray) for n in _ARRAYS}
    class_names = tuple(json.loads((folder / _CLASS_NAMES).read_text(encoding="utf-8")))
    data = ImageData(name=name, class_names=class_names, **arrays)
    if data.fingerprint() != (folder / _FINGERPRINT).read_text(encoding="utf-8"):
        raise UserError(f"data cache {str(folder)!r}: damaged, expected what was written there")
    return data


def _write(data: ImageData, folder: Path) -> None:
    for name in _ARRAYS:
        with open(folder / f"{name}.npy", "wb") as file:
            np.save(file, getattr(data, name))
            to_disk(file)
    with open(folder / _CLASS_NAMES, "w", encoding="utf-8") as file:
        json.dump(data.class_names, file)
        to_disk(file)
    (folder / _FINGERPRINT).write_text(data.fingerprint(), encoding="utf-8")


def to_disk(file: IO) -> None:
    """Waits until a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())
