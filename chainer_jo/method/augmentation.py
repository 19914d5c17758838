"""Preprocessing and data augmentation (Section 5.2): mean subtraction, random crops and flips.

Crops and flips are drawn for a whole epoch at once, so that an epoch can be repeated from its seed.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from chainer_jo.errors import UserError

_SCALE = np.float32(1 / 255)
_MAX_PAD = np.iinfo(np.int8).max // 2


def mean_image(images: np.ndarray) -> np.ndarray:
    """Mean image, float32 (h, w, c) in [0, 1], of uint8 images (n, h, w, c).

    Raises UserError for pixels of another dtype.

    >>> mean_image(np.array([0, 255], np.uint8).reshape(2, 1, 1, 1)).item()
    0.5
    """
    if images.dtype != np.uint8:
        raise UserError(f"images: {images.dtype} {images.shape}, expected uint8 (n, h, w, c)")
    # Summed as integers: exact, whatever the order and the number of images.
    return (images.sum(axis=0, dtype=np.uint64) / (255 * len(images))).astype(np.float32)


def normalise(images: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Mean subtraction: uint8 images (n, h, w, c) in [0, 1] minus the mean image, float32."""
    pixels = np.multiply(images, _SCALE)
    pixels -= mean
    return pixels


def draw(
    rng: np.random.Generator, n: int, pad: int, flip: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random crops and flips of the n images of an epoch.

    Returns
    -------
    dy, dx : int8 (n,), the crop's corner in the padded image, uniform over 0..2 * pad.
    flips : bool (n,), True with probability 1/2; all False without `flip`.
    """
    if not 0 <= pad <= _MAX_PAD:
        raise UserError(f"padding {pad}: expected 0 to {_MAX_PAD} pixels")
    if pad:
        dy, dx = rng.integers(2 * pad + 1, size=(2, n), dtype=np.int8)
    else:
        dy, dx = np.zeros((2, n), dtype=np.int8)
    flips = rng.random(n) < 0.5 if flip else np.zeros(n, dtype=bool)
    return dy, dx, flips


def apply(
    images: np.ndarray,
    mean: np.ndarray,
    dy: np.ndarray,
    dx: np.ndarray,
    flips: np.ndarray,
    pad: int,
) -> np.ndarray:
    """Mean subtraction, zero padding, crop to the original size, horizontal flip.

    Parameters
    ----------
    images : uint8 (n, h, w, c); mean : float32 (h, w, c).
    dy, dx, flips : (n,), drawn by `draw` with the same `pad`.

    Returns
    -------
    float32 (n, h, w, c), contiguous.
    """
    crops = _crop(images, mean, dy, dx, pad) if pad else normalise(images, mean)
    if flips.any():
        crops[flips] = crops[flips, :, ::-1]
    return crops


def _crop(
    images: np.ndarray, mean: np.ndarray, dy: np.ndarray, dx: np.ndarray, pad: int
) -> np.ndarray:
    n, h, w, c = images.shape
    padded = np.zeros((n, h + 2 * pad, w + 2 * pad, c), dtype=np.float32)
    inside = padded[:, pad : pad + h, pad : pad + w]
    np.multiply(images, _SCALE, out=inside)
    inside -= mean
    # Every possible crop as a view, (n, dy, dx, h, w, c); the indexing below copies the drawn ones.
    image, row, column, channel = padded.strides
    crops = as_strided(
        padded,
        (n, 2 * pad + 1, 2 * pad + 1, h, w, c),
        (image, row, column, row, column, channel),
        writeable=False,
    )
    return crops[np.arange(n), dy, dx]
