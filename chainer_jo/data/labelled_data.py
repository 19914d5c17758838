"""Data sets: images, in memory or on disk, with labels that are true or noisy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

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


def _digest_array(array: np.ndarray, digest: hashlib._Hash) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)


def described(value: Any) -> str:
    """Dtype and shape of an array, or the class of another value, for messages."""
    return f"{value.dtype} {value.shape}" if hasattr(value, "dtype") else type(value).__name__


def check_labels(where: str, labels: np.ndarray, count: int, classes: int) -> None:
    """Raises UserError if the labels are not ``count`` class indices, int32."""
    actual, expected = described(labels), f"int32 ({count},)"
    if actual == expected:
        actual += f" from {labels.min()} to {labels.max()}"
        if labels.min() >= 0 and labels.max() < classes:
            return
    raise UserError(f"{where}: labels are {actual}, expected {expected} from 0 to {classes - 1}")


def check_columns(where: str, labels: np.ndarray) -> None:
    """Raises UserError for several labels an image, int (n, m), UNKNOWN in empty places, that are
    of several questions, as no class is in two columns; or that are one-hot: of two classes, one
    label of nearly every image differs from its others."""
    columns, given = [set(column.tolist()) - {UNKNOWN} for column in labels.T], labels != UNKNOWN
    classes = set.union(*columns)
    if sum(map(len, columns)) == len(classes) and (given.sum(axis=1) > 1).any():
        raise UserError(f"{where}: no two columns share a class, expected labels of one question")
    ones = (labels == 1).sum(axis=1)[full := given.all(axis=1)]
    odd = max(np.count_nonzero(ones == number) for number in (1, len(columns) - 1))
    if classes == {0, 1} and full.mean() > 0.5 and odd > 0.9 * len(ones):
        raise UserError(f"{where}: a column for each class (one-hot), expected the classes")


@dataclass(frozen=True, eq=False)
class Labelled:
    """A set of images with labels.

    Attributes
    ----------
    images : uint8 (n, h, w, c), pixels 0..255; or the paths of images on disk, of any size and
        mode: strings (n,), see `as_keys`, below the root of the data set.
    labels : int32 (n,), as the images come with them: noisy, or true labels.
    true_labels : int32 (n,), or UNKNOWN.
    """

    images: np.ndarray
    labels: np.ndarray
    true_labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def on_disk(self) -> bool:
        """True if `images` are paths."""
        return isinstance(getattr(self.images, "dtype", None), np.dtypes.StringDType)

    def take(self, indices: np.ndarray | slice) -> Labelled:
        return Labelled(self.images[indices], self.labels[indices], self.true_labels[indices])


@dataclass(frozen=True, eq=False)
class LabelledData:
    """A data set: either clean, see `clean_data`, or with noisy labels in `train`.

    Attributes
    ----------
    name : name of the data set in results, such as ``"cifar10"``.
    class_names : one name per class; a label is an index into it.
    validation : evaluated against its `labels`; None: the data set is clean, and a run holds out
        validation images and injects noise.
    test : evaluated against its `labels`; may be missing.
    root : folder of images on disk; a copy elsewhere is the same data.

    Raises UserError if arrays do not have their types and shapes, or do not fit each other.
    """

    name: str
    class_names: tuple[str, ...]
    train: Labelled
    validation: Labelled | None
    test: Labelled | None
    root: str = "."

    def __post_init__(self) -> None:
        names = list(self.class_names)
        if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
            raise UserError(f"data {self.name!r}: class names {names}, expected different strings")
        for part, each in self.sets.items():
            where, images = f"data {self.name!r}, {part} part", each.images
            is_uint8 = getattr(images, "dtype", None) == np.uint8
            if not (each.on_disk or is_uint8 and images.ndim == 4):
                expected = "expected uint8 (n, h, w, c)"
                raise UserError(f"{where}: images are {described(images)}, {expected}")
            if not len(images):
                raise UserError(f"{where}: no images, expected at least one")
            check_labels(where, each.labels, len(images), self.num_classes)
            if images.shape[1:] != self.train.images.shape[1:]:
                raise UserError(
                    f"data {self.name!r}: training images are {self.train.images.shape[1:]}, "
                    f"{part} images {images.shape[1:]}, expected one (h, w, c) for both"
                )

        if self.is_clean and not np.array_equal(self.train.labels, self.train.true_labels):
            raise UserError(
                f"data {self.name!r}: the training labels are noisy; give a validation set with "
                "true labels"
            )

    @property
    def sets(self) -> dict[str, Labelled]:
        """The sets that there are, by name: train, validation and test."""
        sets = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: each for name, each in sets.items() if each is not None}

    @property
    def is_clean(self) -> bool:
        """True if all labels are true ones."""
        return self.validation is None

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    def first(self, part: str, per_class: int | None) -> np.ndarray | slice:
        """Indices of the first ``per_class`` images of every class, by their `labels`; None: all.

        Raises UserError if a class has fewer images than asked for.
        """
        if per_class is None:
            return slice(None)
        labels = self.sets[part].labels
        fewest = int(np.bincount(labels, minlength=self.num_classes).min())
        if not 1 <= per_class <= fewest:
            raise UserError(
                f"data {self.name!r}: {per_class} {part} images per class asked for, expected 1 to "
                f"{fewest}"
            )
        of_class = [np.flatnonzero(labels == k)[:per_class] for k in range(self.num_classes)]
        return np.sort(np.concatenate(of_class))

    def subset(
        self, train_per_class: int | None = None, test_per_class: int | None = None
    ) -> LabelledData:
        """First training and test images of every class; see `first`."""
        sets: dict[str, Any] = {"train": self.train.take(self.first("train", train_per_class))}
        if self.test:
            sets["test"] = self.test.take(self.first("test", test_per_class))
        return replace(self, **sets)

    def shrunk(self, factor: int) -> LabelledData:
        """Images shrunk by ``factor``: each square of pixels becomes its rounded mean. Raises
        UserError for images on disk, or that do not divide into such squares."""
        where = f"data {self.name!r}: images"
        if self.train.on_disk:
            raise UserError(f"{where} on disk shrunk, expected resize and crop")
        h, w, c = self.train.images.shape[1:]
        if factor < 1 or h % factor or w % factor:
            raise UserError(
                f"{where} of {h} x {w} pixels shrunk by {factor}, expected a divisor of both"
            )

        def mean(images: np.ndarray) -> np.ndarray:
            squares = images.reshape(-1, h // factor, factor, w // factor, factor, c)
            total = squares.sum(axis=(2, 4), dtype=np.uint32)
            return ((total + factor**2 // 2) // factor**2).astype(np.uint8)

        sets: dict[str, Any] = self.sets
        return replace(self, **{n: replace(s, images=mean(s.images)) for n, s in sets.items()})

    def fingerprint(self) -> str:
        """Digest (16 hexadecimal digits) of images, or of paths of files, and labels; of a clean
        data set also of class names."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.class_names).encode() if self.is_clean else b"")
        for each in self.sets.values():
            if each.on_disk:
                digest_keys(each.images, digest)
            else:
                _digest_array(each.images, digest)
            if self.is_clean:
                _digest_array(each.labels, digest)
            else:
                digest.update(each.labels.data)
        return digest.hexdigest()[:16]


def clean_data(
    name: str,
    train_images: np.ndarray,
    true_labels: np.ndarray,
    test_images: np.ndarray,
    test_labels: np.ndarray,
    class_names: tuple[str, ...],
) -> LabelledData:
    """Data set with true labels, int32 (n,), of images uint8 (n, h, w, c); see `LabelledData`."""
    train = Labelled(train_images, true_labels, true_labels)
    test = Labelled(test_images, test_labels, test_labels)
    return LabelledData(name, class_names, train, None, test)


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
