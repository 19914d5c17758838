"""A data set as plain arrays: images and true labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from chainer_jo.errors import UserError

#: The two parts of a data set.
PARTS = ("train", "test")


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


def first_of_each(where: str, labels: np.ndarray, classes: int, number: int) -> np.ndarray:
    """Sorted indices of the first ``number`` labels of every class. Raises UserError if a class has
    fewer."""
    fewest = int(np.bincount(labels, minlength=classes).min())
    if not 1 <= number <= fewest:
        raise UserError(f"{where} images per class asked for, expected 1 to {fewest}")
    return np.sort(np.concatenate([np.flatnonzero(labels == k)[:number] for k in range(classes)]))


def shrunk(name: str, images: np.ndarray, factor: int) -> np.ndarray:
    """Images uint8 (n, h, w, c) of a data set, shrunk by ``factor``: each square of pixels becomes
    its rounded mean. Raises UserError if the images do not divide into such squares."""
    n, h, w, c = images.shape
    if factor < 1 or h % factor or w % factor:
        raise UserError(
            f"data {name!r}: images of {h} x {w} pixels shrunk by {factor}, "
            "expected a divisor of both"
        )
    squares = images.reshape(n, h // factor, factor, w // factor, factor, c)
    total = squares.sum(axis=(2, 4), dtype=np.uint32)
    return ((total + factor**2 // 2) // factor**2).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class ImageData:
    """Training and test images with their true labels.

    Attributes
    ----------
    name : name of the data set in results, such as ``"cifar10"``.
    train_images, test_images : uint8, (n, h, w, c), pixels 0..255.
    true_labels, test_labels : int32, (n,), true class indices of training and test images.
    class_names : one name per class; a label is an index into it.

    Raises UserError if the arrays do not have these types and shapes, or do not fit each other.
    """

    name: str
    train_images: np.ndarray
    true_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        names = list(self.class_names)
        if not all(isinstance(name, str) for name in names) or len({*names}) < len(names):
            raise UserError(f"data {self.name!r}: class names {names}, expected different strings")
        for part in PARTS:
            self._check(part, *self.part(part))
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise UserError(
                f"data {self.name!r}: training images are {self.train_images.shape[1:]}, "
                f"test images {self.test_images.shape[1:]}, expected one (h, w, c) for both"
            )

    def _check(self, part: str, images: np.ndarray, labels: np.ndarray) -> None:
        where = f"data {self.name!r}, {part} part"
        if getattr(images, "dtype", None) != np.uint8 or images.ndim != 4:
            raise UserError(f"{where}: images are {described(images)}, expected uint8 (n, h, w, c)")
        if not len(images):
            raise UserError(f"{where}: no images, expected at least one")
        check_labels(where, labels, len(images), self.num_classes)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(h, w, c) of every image."""
        return self.train_images.shape[1:]

    def part(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Images and true labels of one of `PARTS`."""
        if name == "train":
            return self.train_images, self.true_labels
        return self.test_images, self.test_labels

    def subset(
        self, train_per_class: int | None = None, test_per_class: int | None = None
    ) -> ImageData:
        """First images of every class; see `first`."""
        train = self.first("train", train_per_class)
        test = self.first("test", test_per_class)
        return replace(
            self,
            train_images=self.train_images[train],
            true_labels=self.true_labels[train],
            test_images=self.test_images[test],
            test_labels=self.test_labels[test],
        )

    def first(self, part: str, per_class: int | None) -> np.ndarray | slice:
        """Indices of the first ``per_class`` images of every class; None: all.

        ``part`` is one of `PARTS`.

        Raises UserError if a class has fewer images than asked for.
        """
        _, labels = self.part(part)
        if per_class is None:
            return slice(None)
        where = f"data {self.name!r}: {per_class} {part}"
        return first_of_each(where, labels, self.num_classes, per_class)

    def shrunk(self, factor: int) -> ImageData:
        """Images shrunk by ``factor``; see `shrunk`."""
        train, test = (shrunk(self.name, self.part(part)[0], factor) for part in PARTS)
        return replace(self, train_images=train, test_images=test)

    def fingerprint(self) -> str:
        """Digest (16 hexadecimal digits) of pixels, labels and class names."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.class_names).encode())
        for array in (self.train_images, self.true_labels, self.test_images, self.test_labels):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]
