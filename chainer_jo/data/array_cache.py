"""Cache in Chainer's data set folder: decoded data sets, memory-mapped, and blocks of arrays."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np

from chainer_jo import files
from chainer_jo.data.labelled_data import LabelledData, clean_data
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError

#: Files of a clean data set, in the order of `clean_data`.
_ARRAYS = "train_images.npy", "train_labels.npy", "test_images.npy", "test_labels.npy"
_CLASS_NAMES, _FINGERPRINT = "class_names.json", "fingerprint"
_ELSEWHERE = "set CHAINER_DATASET_ROOT to another folder"
Made = TypeVar("Made")


def cache() -> Path:
    """Folder of the cache. Raises UserError for a user without a home, where it would be."""
    from chainer.dataset import download

    root = files.expanded(download.get_dataset_root() or "~/.chainer/dataset")
    download.set_dataset_root(str(root))  # containers set it to ~/..., or to nothing
    return root / "chainer_jo"


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """Numbers that change when a file is written or replaced: also by another of the same size and
    time of writing, since no program sets the time of change."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def decoded_once(name: str, key: str, decode: Callable[[], LabelledData]) -> LabelledData:
    """Cached result of `decode`; see `cached_folder`."""
    return cached_folder(
        f"{name}-{key[:16]}", lambda folder: _write(decode(), folder), lambda f: _read(name, f)
    )


def cached_folder(name: str, write: Callable[[Path], None], read: Callable[[Path], Made]) -> Made:
    """Result of `read` on a folder of the cache, which `write` fills if it does not exist.

    Concurrent processes make the folder once, and share its pages in memory.

    Parameters
    ----------
    name : folder name; has to identify the content.
    write : fills an empty folder, which appears whole or not at all.
    read : raises any exception if the folder is missing or damaged.

    Raises UserError if the cache folder cannot be written; errors of `write` pass through.
    """
    folder, temporary = cache() / name, cache() / f"{name}.tmp"
    with contextlib.suppress(Exception):  # first without the lock: the place may be read-only
        return read(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with files.to_lock(folder.with_name(f"{name}.lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(Exception):  # made by another process meanwhile
                return read(folder)
            for leftover in (temporary, folder):
                shutil.rmtree(leftover, ignore_errors=True)
            temporary.mkdir()
            try:
                write(temporary)
                os.rename(temporary, folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            return read(folder)
    except OSError as error:
        raise UserError(
            f"data cache {str(folder)!r}: {error.strerror or error}, expected a writable folder; "
            f"{_ELSEWHERE}"
        ) from error


def _read(name: str, folder: Path) -> LabelledData:
    # As plain arrays: indexing numpy.memmap itself costs extra with every call.
    a, b, c, d = (files.load_mapped(folder / file).view(np.ndarray) for file in _ARRAYS)
    class_names = tuple(json.loads((folder / _CLASS_NAMES).read_text(encoding="utf-8")))
    data = clean_data(name, a, b, c, d, class_names)
    if data.fingerprint() != (folder / _FINGERPRINT).read_text(encoding="utf-8"):
        raise UserError(f"data cache {str(folder)!r}: damaged, expected what was written there")
    return data


def _write(data: LabelledData, folder: Path) -> None:
    arrays = [array for each in data.sets.values() for array in (each.images, each.labels)]
    for name, array in zip(_ARRAYS, arrays, strict=True):
        with open(folder / name, "wb") as file:
            np.save(file, array)
            files.to_disk(file)
    with open(folder / _CLASS_NAMES, "w", encoding="utf-8") as file:
        json.dump(data.class_names, file)
        files.to_disk(file)
    (folder / _FINGERPRINT).write_text(data.fingerprint(), encoding="utf-8")


def cached_blocks(
    names: Iterable[str], load: Callable[[], Callable[[int, str], np.ndarray | None]], bar: Progress
) -> list[np.ndarray]:
    """Arrays in files of the cache; missing and damaged ones are computed, so that a kill costs one
    block.

    Parameters
    ----------
    names : of the files; each has to identify the content.
    load : called once, if a block has to be computed; gives the array of block i, of a name, or
        None, which is left out.
    bar : ends when blocks were computed.

    Raises UserError if the cache cannot be written.
    """
    compute, blocks = None, []
    for i, name in enumerate(names):
        file, block = cache() / name, None
        with contextlib.suppress(Exception):  # a damaged archive can raise anything
            block = files.load_arrays(file, name)["block"]
        if block is None:
            compute = compute or load()
            if (block := compute(i, name)) is None:
                continue
            try:
                files.save_arrays(file, name, block=block)
            except UserError as error:
                raise UserError(f"{error}; {_ELSEWHERE}") from None
        blocks.append(block)
    if compute:
        bar.finish(bar.total)
    return blocks
