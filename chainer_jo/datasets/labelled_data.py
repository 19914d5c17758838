"""Images with the labels that they come with, right or wrong: the data of every run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainer_jo.datasets.image_files import ImageFiles, digest_keys
from chainer_jo.errors import UserError

UNKNOWN = -1  # the true label of an image that has none


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

    @property
    def nbytes(self) -> int:
        return self.images.nbytes + self.labels.nbytes + self.true_labels.nbytes


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
                digest.update(np.ascontiguousarray(split.images))
            digest.update(split.labels)
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
