"""Decoded images kept in Chainer's data set folder and memory-mapped from there ever after."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

import filelock
import numpy as np
from chainer.dataset import download

from chainer_jo.datasets.image_data import ImageData
from chainer_jo.errors import UserError

_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
_CLASS_NAMES = "class_names.json"


def decoded_once(name: str, key: str, decode: Callable[[], ImageData]) -> ImageData:
    """What `decode` gives, from the cache if it is there.

    Processes that ask for the same at once decode it once, and share its pages in memory.

    Parameters
    ----------
    key : digest of what is decoded; the same key promises the same images.

    Raises
    ------
    UserError
        if the cache folder cannot be written, and whatever `decode` raises.
    """
    folder = Path(download.get_dataset_root(), "chainer_jo", f"{name}-{key[:16]}")
    absent_or_damaged = (OSError, EOFError, ValueError)
    with contextlib.suppress(
        *absent_or_damaged
    ):  # first without the lock: the place may be read-only
        return _read(name, folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{folder}.lock"):
            with contextlib.suppress(*absent_or_damaged):  # made by another process meanwhile
                return _read(name, folder)
            _write(decode(), folder)
            return _read(name, folder)
    except OSError as error:
        raise UserError(
            f"data cache {str(folder)!r}: {error.strerror or error}, expected to write there "
            "(CHAINER_DATASET_ROOT names another place)"
        ) from error


def _read(name: str, folder: Path) -> ImageData:
    # As plain arrays: indexing numpy.memmap itself costs extra with every call.
    arrays = {n: np.load(folder / f"{n}.npy", mmap_mode="r").view(np.ndarray) for n in _ARRAYS}
    class_names = tuple(json.loads((folder / _CLASS_NAMES).read_text(encoding="utf-8")))
    return ImageData(name=name, class_names=class_names, **arrays)


def _write(data: ImageData, folder: Path) -> None:
    """Write beside, then rename: the folder is whole or not there. The caller holds the lock."""
    beside = folder.with_name(f"{folder.name}.tmp")
    for leftover in (beside, folder):
        if leftover.exists():
            shutil.rmtree(leftover)
    beside.mkdir()
    try:
        for name in _ARRAYS:
            with open(beside / f"{name}.npy", "wb") as file:
                np.save(file, getattr(data, name))
                _to_disk(file)
        with open(beside / _CLASS_NAMES, "w", encoding="utf-8") as file:
            json.dump(data.class_names, file)
            _to_disk(file)
        os.rename(beside, folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _to_disk(file: IO) -> None:
    file.flush()
    os.fsync(file.fileno())
