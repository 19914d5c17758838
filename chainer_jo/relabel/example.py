"""``chainer-jo example``: images with wrong labels, to try things on."""

from __future__ import annotations

import shlex
from pathlib import Path

from chainer_jo.commands.ending import ending
from chainer_jo.commands.options import Parser
from chainer_jo.relabel import example_images


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process with 0 or 2 (bad input)."""
    with ending():
        parser = Parser(
            prog="chainer-jo example",
            description="Write scikit-learn's handwritten digits as images with a table of labels, "
            "about 30 % of them wrong, and a table of the true ones.",
            allow_abbrev=False,
        )
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="a new folder")
        folder = parser.parse_args(arguments).folder
        wrong = example_images.write(folder)
        labels, true_labels = (
            folder / name for name in (example_images.LABELS, example_images.TRUE_LABELS)
        )
        print(f"written: {folder}: 1,797 images, {wrong} of their labels are wrong")
        print(
            "try: chainer-jo relabel",
            *map(shlex.quote, (str(labels), "--out", "out", "--true-labels", str(true_labels))),
        )
