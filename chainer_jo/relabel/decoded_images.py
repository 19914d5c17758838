"""Image files of all sizes as one array: decoded once, memory-mapped ever after."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo.cores import usable_cores
from chainer_jo.datasets import decoding
from chainer_jo.datasets.array_cache import made_once, to_disk
from chainer_jo.datasets.problems import Problems
from chainer_jo.datasets.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.relabel.labelled_images import LabelledImages

_FILE = "images.npy"
#: Images that are handed to the threads at a time.
CHUNK = 1024


def decoded(images: LabelledImages, resize: int, crop: int | None = None) -> np.ndarray:
    """All images, resized to `resize` x `resize` pixels and cut to the centre, see `decode`.

    Parameters
    ----------
    crop : None: nothing is cut off.

    Returns
    -------
    uint8 (n, crop, crop, 3), read-only, its pages shared by all processes that ask for it.

    Raises
    ------
    UserError
        naming images that cannot be decoded, with their lines; or if the cache cannot be written.
    """
    shape = (len(images), crop or resize, crop or resize, 3)
    about = f"{images.files_digest} {shape} {resize} {decoding.VERSION}"
    key = hashlib.sha256(about.encode()).hexdigest()[:16]

    def write(folder: Path) -> None:
        with open(folder / _FILE, "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for pixels in _decode_all(images, resize, shape[1]):
                file.write(pixels)
            to_disk(file)

    def read(folder: Path) -> np.ndarray:
        return np.load(folder / _FILE, mmap_mode="r").view(np.ndarray)

    return made_once(f"images-{key}", write, read)


def usual_size(images: LabelledImages, sample: int = 100) -> int:
    """The median over some images of the longer side, in pixels.

    Raises UserError if none of them can be opened.
    """
    sides = []
    chosen = np.linspace(0, len(images) - 1, min(sample, len(images))).astype(int)
    for file in images.files(chosen):
        try:
            with Image.open(file, formats=decoding.FORMATS) as image:
                sides.append(max(image.size))
        except Exception:  # which ones, and why, decoding tells
            continue
    if not sides:
        raise UserError(f"data {images.source!r}: none of {len(chosen)} images can be opened")
    return int(np.median(sides))


def _decode_all(images: LabelledImages, resize: int, crop: int) -> Iterator[np.ndarray]:
    """The images one by one, in order, as contiguous arrays."""
    problems = Problems()
    bar = Progress("Decoding", "images", len(images))

    def attempt(file: str) -> np.ndarray | UserError:
        try:
            return np.ascontiguousarray(decoding.decode(file, resize, crop))
        except UserError as error:
            return error

    # In threads: decoding, resizing and converting hold no lock, and nothing has to be copied.
    with ThreadPoolExecutor(usable_cores()) as pool:
        for start in range(0, len(images), CHUNK):
            chunk = range(start, min(start + CHUNK, len(images)))
            for i, pixels in zip(chunk, pool.map(attempt, images.files(chunk)), strict=True):
                if isinstance(pixels, UserError):
                    problems.add("image cannot be decoded", images.show(i))
                elif not len(problems):
                    yield pixels
                bar.update(i)
    problems.raise_if_any(f"data {images.source!r}")
    bar.finish(len(images))
