"""An example of images with wrong labels to try things on: scikit-learn's handwritten digits."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.datasets import digits, noise
from chainer_jo.relabel.label_table import LABEL, PATH

LABELS, TRUE_LABELS = "labels.csv", "true_labels.csv"
#: A third of the labels is drawn anew from all ten classes, which makes 30 % wrong (symmetric
#: noise, Section 5.1).
RATE = 1 / 3
SEED = 0


def write(folder: str | Path) -> int:
    """Writes 1,797 PNGs, `labels.csv` with wrong labels among them, and `true_labels.csv`; the same
    ones each time, all or nothing.

    Returns
    -------
    How many labels are wrong.

    Raises
    ------
    UserError
        if the folder cannot be written, or has something in it.
    """
    folder = Path(folder)
    data = digits.load()
    images = np.concatenate([data.train_images, data.test_images])
    labels = np.concatenate([data.train_labels, data.test_labels])
    noisy = noise.symmetric(labels, RATE, data.num_classes, np.random.default_rng(SEED))
    paths = [f"images/{i:04d}.png" for i in range(len(images))]
    with files.new_folder(folder) as whole:
        (whole / "images").mkdir()
        for path, image in zip(paths, images, strict=True):
            Image.fromarray(image[..., 0]).save(whole / path)
        for name, which in ((LABELS, noisy), (TRUE_LABELS, labels)):
            _write_table(whole / name, paths, (data.class_names[k] for k in which))
    return int((noisy != labels).sum())


def _write_table(file: Path, paths: Iterable[str], labels: Iterable[str]) -> None:
    with open(file, "w", newline="", encoding="utf-8") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow((PATH, LABEL))
        writer.writerows(zip(paths, labels, strict=True))
