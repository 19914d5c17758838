"""Images, in memory or on disk, with noisy and true labels: the data of every run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo.data.decoding import decode
from chainer_jo.data.image_data import first_of_each, shrunk
from chainer_jo.errors import UserError

UNKNOWN = -1  # true label of an image without a known one


def as_keys(paths: Iterable[str]) -> np.ndarray:
    """Image paths as an array (n,) of strings, about half of what a list takes."""
    return np.array(list(paths), np.dtypes.StringDType())


def digest_keys(keys: np.ndarray, digest: hashlib._Hash) -> None:
    """Updates a hash with all keys (n,) and their lengths."""
    encoded = [key.encode() for key in keys]
    digest.update(b"".join(encoded))
    digest.update(np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded))).data)


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images of any size and mode: image i is the file `root / keys[i]`.

    `keys` are strings (n,), see `as_keys`. Indexing by slices and index arrays gives ImageFiles.
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
        """Mean over all pixels after `decode`: float64 (3,) in [0, 255]."""
        pixels = [decode(path, resize, crop) for path in self.paths(range(len(self)))]
        return np.mean(pixels, axis=(0, 1, 2))


@dataclass(frozen=True, eq=False)
class Labelled:
    """A set of images with labels.

    Attributes
    ----------
    images : uint8 (n, h, w, c), or n `ImageFiles`.
    labels : int32 (n,), as the images come with them: noisy, or true labels.
    true_labels : int32 (n,), or UNKNOWN.
    """

    images: np.ndarray | ImageFiles
    labels: np.ndarray
    true_labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray) -> Labelled:
        return Labelled(self.images[indices], self.labels[indices], self.true_labels[indices])

    def shrunk(self, name: str, factor: int) -> Labelled:
        if isinstance(self.images, ImageFiles):
            raise UserError(f"data {name!r}: images on disk shrunk, expected resize and crop")
        return replace(self, images=shrunk(name, self.images, factor))


@dataclass(frozen=True, eq=False)
class LabelledData:
    """A data set with noisy labels, to be corrected in `train`.

    Attributes
    ----------
    name : name of the data set in results.
    validation, test : evaluated against their `labels`; `test` may be missing.
    """

    name: str
    class_names: tuple[str, ...]
    train: Labelled
    validation: Labelled
    test: Labelled | None

    def subset(
        self, train_per_class: int | None = None, test_per_class: int | None = None
    ) -> LabelledData:
        """First training and test images of every class, by their `labels`; None: all."""
        chosen: dict[str, Any] = {}
        for part, number in (("train", train_per_class), ("test", test_per_class)):
            if number is not None and (each := getattr(self, part)):
                where, classes = f"data {self.name!r}: {number} {part}", len(self.class_names)
                chosen[part] = each.take(first_of_each(where, each.labels, classes, number))
        return replace(self, **chosen) if chosen else self

    def shrunk(self, factor: int) -> LabelledData:
        """Images shrunk by ``factor``; see `image_data.shrunk`. Raises UserError for images on
        disk."""
        parts = (self.train, self.validation, self.test)
        train, validation, test = (each and each.shrunk(self.name, factor) for each in parts)
        assert train is not None and validation is not None
        return replace(self, train=train, validation=validation, test=test)

    def fingerprint(self) -> str:
        """Digest (16 hexadecimal digits) of images, or of paths of files, and labels."""
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
    """Index of a class by name, compared by letters and digits only ("T-Shirt" is "tshirt").

    Raises UserError for a name that no class has.
    """

    def plain(text: str) -> str:
        return "".join(filter(str.isalnum, text)).lower()

    for i, candidate in enumerate(class_names):
        if plain(candidate) == plain(name):
            return i
    raise UserError(f"class {name!r}: expected one of {', '.join(class_names)}")


def by_value(name: str) -> tuple[list[tuple[Decimal | int, str]], str]:
    """Natural sorting key: "9" before "10", and "09" before "9"."""
    runs = re.findall(r"[0-9]+|[^0-9]+", name)
    # Python makes no int of more than 4,300 digits.
    return [(Decimal(r), "") if r.isdecimal() else (-1, r) for r in runs], name
