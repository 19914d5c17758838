"""Images, in memory or on disk, with the labels that they come with, right or wrong: the data of
every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path

import numpy as np

from chainer_jo.data.decoding import decode
from chainer_jo.errors import UserError

UNKNOWN = -1  # the true label of an image that has none


def as_keys(paths: Iterable[str]) -> np.ndarray:
    """Image paths as an array (n,) of strings, about half of what a list takes."""
    return np.array(list(paths), np.dtypes.StringDType())


def digest_keys(keys: np.ndarray, digest: hashlib._Hash) -> None:
    """Feeds all keys (n,), and where each ends, to a hash."""
    encoded = [key.encode() for key in keys]
    digest.update(b"".join(encoded))
    digest.update(np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded))).data)


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images of any size and mode: image i is the file `root / keys[i]`.

    `keys` are strings, (n,), see `as_keys`. Slices and index arrays give ImageFiles, as they give
    arrays of an array of images.
    """

    root: Path
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: slice | np.ndarray) -> ImageFiles:
        return ImageFiles(self.root, self.keys[index])

    def paths(self, indices: Iterable[int]) -> list[str]:
        return [f"{self.root}/{self.keys[i]}" for i in indices]

    def mean_colour(self, resize: int, crop: int) -> np.ndarray:
        """Mean of all pixels as `decode` gives them: float64 (3,), from 0 to 255."""
        pixels = [decode(path, resize, crop) for path in self.paths(range(len(self)))]
        return np.mean(pixels, axis=(0, 1, 2))


@dataclass(frozen=True, eq=False)
class Labelled:
    """One set of images.

    Attributes
    ----------
    images : uint8 (n, h, w, c), or n `ImageFiles`.
    labels : int32 (n,), what the images come with.
    true_labels : int32 (n,), UNKNOWN where they are not known.
    """

    images: np.ndarray | ImageFiles
    labels: np.ndarray
    true_labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray) -> Labelled:
        return Labelled(self.images[indices], self.labels[indices], self.true_labels[indices])


@dataclass(frozen=True, eq=False)
class LabelledData:
    """A data set that comes with its noise: `train` is what labels are corrected in.

    Attributes
    ----------
    name : what results computed from it are labelled with.
    validation, test : scored by their `labels`; `test` may be missing.
    parts : int (n,), which part each training image is in, if they are divided.
    """

    name: str
    class_names: tuple[str, ...]
    train: Labelled
    validation: Labelled
    test: Labelled | None
    parts: np.ndarray | None = None

    def without(self, part: int) -> LabelledData:
        """The same with one part of the training images in the place of the validation set."""
        left_out = self.parts == part
        train, validation = (
            self.train.take(np.flatnonzero(rows)) for rows in (~left_out, left_out)
        )
        return LabelledData(self.name, self.class_names, train, validation, self.test)

    def fingerprint(self) -> str:
        """16 hexadecimal digits that follow from images and labels; of files, from their paths."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for split in (self.train, self.validation, self.test):
            if split is None:
                continue
            if isinstance(split.images, ImageFiles):
                digest_keys(split.images.keys, digest)
            else:
                digest.update(f"{split.images.dtype.str}{split.images.shape}".encode())
                digest.update(np.ascontiguousarray(split.images).data)
            digest.update(split.labels.data)
        return digest.hexdigest()[:16]


def class_index(name: str, class_names: Sequence[str]) -> int:
    """Index of a class by its name; only letters and digits count ("T-Shirt" is "tshirt").

    Raises
    ------
    UserError
        for a name that no class has.
    """

    def plain(text: str) -> str:
        return "".join(filter(str.isalnum, text)).lower()

    for i, candidate in enumerate(class_names):
        if plain(candidate) == plain(name):
            return i
    raise UserError(f"class {name!r}: expected one of {', '.join(class_names)}")


def by_value(name: str) -> tuple[list[tuple[Decimal | int, str]], str]:
    """Sorting key by which "9" comes before "10"; the name itself tells "09" from "9"."""
    runs = re.findall(r"[0-9]+|[^0-9]+", name)
    # Python makes no int of more than 4,300 digits.
    return [(Decimal(r), "") if r.isdecimal() else (-1, r) for r in runs], name
