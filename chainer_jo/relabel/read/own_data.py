"""Images of a user as data of runs: divided into folds; decoded once if they are small."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.data import decoding
from chainer_jo.data.array_cache import cached_folder
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import UNKNOWN, ImageFiles, Labelled, LabelledData
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.relabel.read import labelled_images
from chainer_jo.relabel.read.label_table import USUAL, TableForm
from chainer_jo.relabel.read.labelled_images import LabelledImages, LabelledSets

#: Name of the data in descriptions of runs, which does not change when images are moved.
NAME = "own-images"
_FILE, _DIGEST = "images.npy", "digest"
#: Kind of problem: an image that is missing or damaged.
UNDECODABLE = f"image cannot be decoded, {decoding.EXPECTED}"
#: Images handed to the threads at a time.
CHUNK = 1024
#: Images opened for the usual size.
SAMPLED_IMAGES = 100


@dataclass(frozen=True)
class OwnData:
    """Data that the command line names, as in `labelled_images.read_sets`; other processes are sent
    the names, and load the data."""

    data: str
    validation: str | None
    test: str | None
    form: TableForm = USUAL

    @property
    def sets(self) -> LabelledSets:
        """The images. Raises UserError as `labelled_images.read_sets` does."""
        return _sets(self.data, self.validation, self.test, self.form)

    def load(self, side: int | None, fold_of: np.ndarray) -> LabelledData:
        """Loads the training data of runs, without true labels and held-out sets.

        Parameters
        ----------
        side : pixels along a side of the decoded images; None: images stay on disk.
        fold_of : fold (n,) of each image.
        """
        images = self.sets.train
        seen = ImageFiles(images.root, images.paths) if side is None else decoded(images, side)
        train = Labelled(seen, images.labels, np.full_like(images.labels, UNKNOWN))
        nothing = train.take(np.arange(0))
        return LabelledData(NAME, self.sets.class_names, train, nothing, None, fold_of)

    @property
    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the sets, by their use."""
        return {use: images.fingerprint for use, images in self.sets.by_use.items()}


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _sets(data: str, validation: str | None, test: str | None, form: TableForm) -> LabelledSets:
    return labelled_images.read_sets(data, validation, test, form)


def decoded(images: LabelledImages, resize: int) -> np.ndarray:
    """Decoded images, resized to ``resize`` pixels a side: uint8 (n, resize, resize, 3), read-only,
    in memory that all processes share.

    Raises UserError, naming images that cannot be decoded, with their lines; or if the cache cannot
    be written.
    """
    shape = (len(images), resize, resize, 3)

    def write(folder: Path) -> None:
        with open(folder / _FILE, "wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for pixels in _decode_all(images, resize):
                file.write(pixels.data)
            files.to_disk(file)
        (folder / _DIGEST).write_text(files.digest(folder / _FILE), encoding="utf-8")

    def read(folder: Path) -> np.ndarray:
        if files.digest(folder / _FILE) != (folder / _DIGEST).read_text(encoding="utf-8"):
            raise UserError(f"{folder / _FILE}: damaged, expected what was written there")
        return np.load(folder / _FILE, mmap_mode="r").view(np.ndarray)

    return cached_folder(f"images-{_key(images, resize)}", write, read)


def check(images: LabelledImages, resize: int) -> None:
    """Decodes all images once, and remembers that: else a damaged one would end training, or the
    classification at its end, and be the first of many.

    Raises UserError as `decoded` does.
    """

    def decode(folder: Path) -> None:
        for _ in _decode_all(images, resize):
            pass

    cached_folder(f"decodable-{_key(images, resize)}", decode, os.listdir)


def _key(images: LabelledImages, resize: int) -> str:
    shape = (len(images), resize, resize, 3)
    about = f"{images.files_digest} {shape} {resize} {decoding.VERSION}"
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def usual_size(images: LabelledImages) -> int:
    """Median over SAMPLED_IMAGES images of the longer side, in pixels.

    Raises UserError if none of them can be opened.
    """
    sides = []
    chosen = np.linspace(0, len(images) - 1, min(SAMPLED_IMAGES, len(images))).astype(int)
    for file in images.files(chosen):
        try:
            with Image.open(file, formats=decoding.FORMATS) as image:
                sides.append(max(image.size))
        except Exception:  # which ones, and why, decoding tells
            continue
    if not sides:
        raise UserError(f"data {images.source!r}: none of {len(chosen)} images can be opened")
    return int(np.median(sides))


def _decode_all(images: LabelledImages, resize: int) -> Iterator[np.ndarray]:
    """Decoded images one by one, in order, as contiguous arrays."""
    problems = Problems()
    bar = Progress("Decoding", "images", len(images))
    attempt = functools.partial(decoding.attempt, size=resize)

    # In threads: decoding, resizing and converting hold no lock, and nothing has to be copied.
    with ThreadPoolExecutor(usable_cores()) as pool:
        for start in range(0, len(images), CHUNK):
            chunk = range(start, min(start + CHUNK, len(images)))
            for i, pixels in zip(chunk, pool.map(attempt, images.files(chunk)), strict=True):
                if isinstance(pixels, str):
                    problems.add(UNDECODABLE, f"{images.show(i)}: {pixels}")
                elif not len(problems):
                    yield pixels
                bar.update(i)
    problems.raise_if_any(f"data {images.source!r}")
    bar.finish(len(images))
