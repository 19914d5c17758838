"""A small data set in Clothing1M's layout, whole or damaged, for the tests."""

from __future__ import annotations

from pathlib import Path

from chainer_jo.data import clothing1m_standin
from chainer_jo.reproduction.experiments.experiment import (
    Experiment,
    ImageSelection,
    LabelSchedule,
    Network,
    Noise,
    Optimization,
)

SMALL = dict(train=4, clean_train=1, validation=2, test=3)  # images per class
CLASSES = len(clothing1m_standin.CLASS_NAMES)
#: A first step on it.
ON_DISK = Experiment(
    ImageSelection("clothing1m-like", resize=18, crop=16),
    Noise("real"),
    Network((1, 1), (4, 8)),
    Optimization(3, 0.02, (), 8, 0.9, 1e-3, pad=0, flip=False),
    "joint",
    seed=0,
    alpha=1.2,
    beta=0.8,
    relabelling=LabelSchedule(1, 3),
)


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
