"""A small stand-in for Clothing1M that needs no download: 14 classes, real digits and drawn shapes.

Written to disk in the published layout. The classes have Clothing1M's names and are confused in
pairs, such as Knitwear and Sweater, with the original's label accuracy of 61.54 % (Section 5.1),
rounded to whole images of every class.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from chainer_jo.data import clothing1m
from chainer_jo.data.clothing1m import CLASS_NAMES

#: Label accuracy of each class of the noisy training images.
LABEL_ACCURACY = 0.6154
VERSION = 1  # part of the folder's name: increment it when `write` draws something else
CONFUSED = (
    ("Knitwear", "Sweater"), ("T-shirt", "Hoodie"), ("Shirt", "Chiffon"), ("Windbreaker", "Jacket"),
    ("Down Coat", "Suit"), ("Shawl", "Vest"), ("Dress", "Underwear"),
)  # fmt: skip
DIGITS = 10  # the first classes
_CANVAS = 64
_WRITINGS = [(0, 2, 4, 6, 8), (1,), (3,), (5, 7, 9)]  # out of 10 images of a digit, by list
_SHAPES = {  # corner points in the unit square
    "triangle": [(0.5, 0.1), (0.9, 0.85), (0.1, 0.85)],
    "diamond": [(0.5, 0.05), (0.85, 0.5), (0.5, 0.95), (0.15, 0.5)],
    "hourglass": [(0.15, 0.1), (0.85, 0.1), (0.15, 0.9), (0.85, 0.9)],
    "plus": [
        (0.4, 0.1), (0.6, 0.1), (0.6, 0.4), (0.9, 0.4), (0.9, 0.6), (0.6, 0.6),
        (0.6, 0.9), (0.4, 0.9), (0.4, 0.6), (0.1, 0.6), (0.1, 0.4), (0.4, 0.4),
    ],
}  # fmt: skip


def write(
    root: Path,
    *,
    train: int = 100,
    clean_train: int = 5,
    validation: int = 20,
    test: int = 40,
    size: int = 32,
) -> None:
    """Draws the stand-in and writes it into the empty folder `root`.

    The same arguments give the same files. No digit's writing is in two splits. The clean label
    file has the noisy images' true labels too, which the original's lacks.

    Parameters
    ----------
    train, clean_train, validation, test : images per class in each key list.
    size : width and height of the JPEG files in pixels.
    """
    from sklearn.datasets import load_digits  # a second, for whoever imports this module

    digits, rng = load_digits(), np.random.default_rng(0)
    clean_lines, noisy_lines = [], []
    counts = train, clean_train, validation, test
    for number, (name, per_class) in enumerate(zip(clothing1m.KEY_LISTS, counts, strict=True)):
        folder = Path("images") / str(number)
        (root / folder).mkdir(parents=True)
        labels = rng.permutation(np.repeat(np.arange(len(CLASS_NAMES)), per_class))
        keys = [f"{folder.as_posix()}/{i:05d}.jpg" for i in range(len(labels))]
        for key, label in zip(keys, labels, strict=True):
            draw(_glyph(digits, label, number, rng), size, rng).save(root / key, quality=90)
        noisy = noisy_labels(labels, LABEL_ACCURACY, rng)
        clean_lines += _key_values(keys, labels)
        noisy_lines += _key_values(keys, noisy)
        (root / name).write_text("\n".join(keys) + "\n")
    (root / clothing1m.CLEAN_LABELS).write_text("".join(clean_lines))
    (root / clothing1m.NOISY_LABELS).write_text("".join(noisy_lines))
    (root / clothing1m.CATEGORY_FILE).write_text("\n".join(CLASS_NAMES) + "\n")


def draw(mask: np.ndarray, size: int, rng: np.random.Generator) -> Image.Image:
    """A dark glyph at a random place, angle and size on a light ground with some grain.

    `mask` is float (h, w) in [0, 1], 1 where there is ink. The picture is RGB, `size` x `size`.
    """
    ink = Image.fromarray(np.uint8(255 * mask)).resize((_CANVAS, _CANVAS), Image.Resampling.BICUBIC)
    glyph_size = round(size * rng.uniform(0.7, 0.95))
    ink = ink.rotate(rng.uniform(-12, 12), Image.Resampling.BICUBIC).resize((glyph_size,) * 2)
    placed = Image.new("L", (size, size))
    placed.paste(ink, tuple(rng.integers(0, size - glyph_size + 1, 2).tolist()))
    alpha = np.asarray(placed, np.float32)[..., np.newaxis] / 255
    ground, colour = rng.uniform(165, 255, 3), rng.uniform(0, 90, 3)
    pixels = ground + alpha * (colour - ground) + rng.normal(0, 8, (size, size, 3))
    return Image.fromarray(np.uint8(pixels.clip(0, 255)))


def glyph(name: str) -> str:
    """Description of a class's images: ``the digit 0`` for T-shirt, a shape for the last ones."""
    number = CLASS_NAMES.index(name)
    return f"the digit {number}" if number < DIGITS else f"a {list(_SHAPES)[number - DIGITS]}"


def noisy_labels(labels: np.ndarray, label_accuracy: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of which a fraction 1 - `label_accuracy` of each class has the confused class."""
    pairs = [(CLASS_NAMES.index(one), CLASS_NAMES.index(two)) for one, two in CONFUSED]
    other = dict(pairs + [(two, one) for one, two in pairs])
    noisy = labels.copy()
    for k in range(len(CLASS_NAMES)):
        members = rng.permutation(np.flatnonzero(labels == k))
        noisy[members[round(label_accuracy * len(members)) :]] = other[k]
    return noisy


def _key_values(keys: list[str], labels: np.ndarray) -> list[str]:
    return [f"{key} {label}\n" for key, label in zip(keys, labels, strict=True)]


def _glyph(digits: Any, label: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """Ink of a real digit for classes 0 to 9, of a shape for the rest; lists share none."""
    if label < DIGITS:
        writings = digits.images[digits.target == label] / digits.images.max()
        of_list = np.isin(np.arange(len(writings)) % 10, _WRITINGS[number])
        return rng.choice(writings[of_list])
    corners = list(_SHAPES.values())[label - DIGITS]
    shaken = np.asarray(corners) + rng.uniform(-0.06, 0.06, (len(corners), 2))
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    ImageDraw.Draw(canvas).polygon([tuple(xy) for xy in shaken * _CANVAS], fill=255)
    return np.asarray(canvas) / 255
