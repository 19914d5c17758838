"""From an image file to what a network sees: RGB, a resized square's centre (section 4.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo.errors import UserError


def open_resized(path: str | Path, size: int) -> Image.Image:
    """The image in RGB, resized to `size` x `size` pixels unless it has that size (antialiased).

    Raises
    ------
    UserError
        for a file that is missing, truncated or no image.
    """
    try:
        with Image.open(path) as image:
            image = image.convert("RGB")
    except FileNotFoundError:
        raise UserError(f"image {str(path)!r}: no such file") from None
    except Exception as error:  # on damaged files Pillow raises anything, SyntaxError included
        reason = str(error) or type(error).__name__
        raise UserError(f"image {str(path)!r}: cannot be decoded ({reason})") from None
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return image


def decode(path: str | Path, resize: int = 256, crop: int = 224) -> np.ndarray:
    """The centre of the image resized to `resize` x `resize`: uint8 (crop, crop, 3)."""
    first = (resize - crop) // 2
    return np.asarray(open_resized(path, resize))[first : first + crop, first : first + crop]
