"""Images that stay on disk, a million of them: their paths, until a batch is decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo.datasets.decoding import decode


def as_keys(paths: Iterable[str]) -> np.ndarray:
    """Image paths as an array (n,) of strings, about half of what a list takes."""
    return np.array(list(paths), np.dtypes.StringDType())


def digest_keys(keys: np.ndarray, digest: hashlib._Hash) -> None:
    """Feeds all keys (n,), and where each ends, to a hash."""
    encoded = [key.encode() for key in keys]
    digest.update(b"".join(encoded))
    digest.update(np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded))))


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

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes
