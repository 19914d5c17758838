"""Images that stay on disk, a million of them: their paths, until a batch is decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo.datasets.decoding import decode


class KeyList(Sequence):
    """Image paths in two flat arrays, about half of what a list of str takes.

    Slices and index arrays give a KeyList, integers a str.
    """

    #: Keys copied at a time by an index array, whose bytes have an index each meanwhile.
    CHUNK = 1 << 14

    def __init__(self, keys: Iterable[bytes]) -> None:
        keys = list(keys)
        self._text = np.frombuffer(b"".join(keys), np.uint8)
        self._ends = np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index):
        if isinstance(index, slice | np.ndarray | list):
            return self._take(np.arange(len(self))[index])
        return self._bytes(range(len(self))[index]).decode()

    def _take(self, indices: np.ndarray) -> KeyList:
        lengths = np.diff(self._ends, prepend=0)[indices]
        starts, ends = self._ends[indices] - lengths, np.cumsum(lengths)
        taken = KeyList([])
        taken._ends = ends
        taken._text = np.empty(ends[-1] if len(ends) else 0, np.uint8)
        for first in range(0, len(indices), self.CHUNK):
            part = slice(first, first + self.CHUNK)
            begin, end = ends[first] - lengths[first], ends[part][-1]
            shifts = starts[part] - (ends[part] - lengths[part])
            taken._text[begin:end] = self._text[
                np.repeat(shifts, lengths[part]) + np.arange(begin, end)
            ]
        return taken

    def _bytes(self, i: int) -> bytes:
        return self._text[self._ends[i - 1] if i else 0 : self._ends[i]].tobytes()

    def digest_into(self, digest: hashlib._Hash) -> None:
        """Feeds all keys, and where each ends, to a hash."""
        digest.update(self._text)
        digest.update(self._ends)

    @property
    def nbytes(self) -> int:
        return self._text.nbytes + self._ends.nbytes


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images of any size and mode: image i is the file `root / keys[i]`.

    Slices and index arrays give ImageFiles, as they give arrays of an array of images.
    """

    root: Path
    keys: KeyList

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
