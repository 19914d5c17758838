"""``chainer-jo example``: writes scikit-learn's handwritten digits with noisy labels."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.command_line import Parser, exit_codes, print_safely
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import LABEL, PATH

LABELS, TRUE_LABELS = "labels.csv", "true_labels.csv"
#: Noise rate of symmetric noise (Section 5.1): a third of the labels is drawn from all ten
#: classes, so that 30 % are wrong.
RATE = 1 / 3
SEED = 0


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process with 0 or 2 (bad input)."""
    with exit_codes():
        parser = Parser(
            prog="chainer-jo example",
            description="Write scikit-learn's handwritten digits as images, with a table of noisy "
            "labels (about 30 % corrupted) and a table of true labels.",
            allow_abbrev=False,
        )
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="new folder to write")
        folder = parser.parse_args(arguments).folder
        wrong = write(folder)
        labels, true_labels = (folder / name for name in (LABELS, TRUE_LABELS))
        print_safely(f"written: {folder}: 1,797 images, {wrong} labels are corrupted")
        print_safely(
            "try: chainer-jo relabel",
            *map(shlex.quote, (str(labels), "--out", "out", "--true-labels", str(true_labels))),
        )


def write(folder: str | Path) -> int:
    """Writes 1,797 PNGs, `labels.csv` with noisy labels and `true_labels.csv`, the same ones each
    time; returns the number of wrong labels. Raises UserError for a folder that is not empty."""
    from chainer_jo.data import digits  # imports Chainer
    from chainer_jo.method import noise

    folder = Path(folder)
    data = digits.load()
    images = np.concatenate([each.images for each in data.sets.values()])
    labels = np.concatenate([each.labels for each in data.sets.values()])
    noisy = noise.symmetric(labels, RATE, data.num_classes, np.random.default_rng(SEED))
    paths = [f"images/{i:04d}.png" for i in range(len(images))]
    with files.new_folder(folder) as whole:
        (whole / "images").mkdir()
        for path, image in zip(paths, images, strict=True):
            Image.fromarray(image[..., 0]).save(whole / path)
        for name, codes in ((LABELS, noisy), (TRUE_LABELS, labels)):
            names = (data.class_names[k] for k in codes)
            with open(whole / name, "w", newline="", encoding="utf-8") as text:
                label_table.write(text, {PATH: paths, LABEL: names})
    return int((noisy != labels).sum())
