"""A small data set in Clothing1M's layout, whole or damaged, for the tests."""

from __future__ import annotations

from pathlib import Path

from chainer_jo.datasets import clothing1m_standin

SMALL = dict(train=4, clean_train=1, validation=2, test=3)  # images per class
CLASSES = len(clothing1m_standin.CLASS_NAMES)


def make_clothing1m_like(root: Path, **options) -> Path:
    """Writes a set of 56 noisy, 14 unused, 28 validation and 42 test images and returns its folder.

    `options` are those of `clothing1m_standin.write`, which draws it.
    """
    root.mkdir()
    clothing1m_standin.write(root, **(SMALL | options))
    return root


def append(path: Path, text: str) -> None:
    """Damage: more lines at the end of a list file."""
    with path.open("a") as file:
        file.write(text)
