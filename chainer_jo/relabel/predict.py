"""``chainer-jo predict``: classifies images with the network trained by ``relabel``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import Parser, exit_codes, print_safely
from chainer_jo.data import image_names
from chainer_jo.errors import UserError
from chainer_jo.relabel.read import class_folders, label_table


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process with 0, 2 (bad input) or 130 (interrupted)."""
    with exit_codes():
        _predict(_parse(arguments))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="chainer-jo predict",
        description="Classify images with the network that chainer-jo relabel trained on corrected "
        "labels. Prints a CSV table of path, label and probability.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("folder", metavar="FOLDER", type=Path, help="the --out folder of chainer-jo relabel")
    add("images", metavar="IMAGE", nargs="*", help="image files or folders of images")
    add("--features", metavar="FILE",
        help="features of the images; required if relabel used --features FILE")  # fmt: skip
    return parser.parse_intermixed_args(arguments)


def _predict(flags: argparse.Namespace) -> None:
    # They import Chainer, which help and refused flags do without.
    from chainer_jo.relabel.read.feature_table import read_arrays, usable
    from chainer_jo.relabel.read.image_features import EXTRACTORS, compute
    from chainer_jo.relabel.write import network_file

    network = network_file.load(flags.folder)
    seen = network.about.get("seen")
    if (flags.features is None) == (seen is None):
        wanted = "--features FILE.npz" if flags.features is None else "images, not --features"
        raise UserError(f"network {str(flags.folder)!r}: expected {wanted}, as it was trained on")
    if flags.features:
        if flags.images:
            raise UserError(f"IMAGE {flags.images[0]!r}: expected none with --features")
        features, paths, _ = read_arrays(flags.features, "features")
        where, length = f"features {flags.features!r}", network.about["features"]
        if features.shape[1] != length:
            raise UserError(f"{where}: {features.shape[1]} numbers each, expected {length}")
        features = usable(where, features, lambda i: repr(paths[i]))
    else:
        if not flags.images:
            raise UserError("IMAGE: none given, expected image files or folders of them")
        paths = [path for name in flags.images for path in _images(name)]
        if not paths:
            folders, endings = ", ".join(flags.images), ", ".join(image_names.ENDINGS)
            raise UserError(f"images in {folders!r}: none, expected files that end in {endings}")
        assert seen
        extractor = EXTRACTORS[seen["by"]](seen["side"])
        features = compute(paths, extractor, show=lambda i: repr(paths[i]))
    probabilities = network.of_features(features)
    if not (probabilities >= 0).all():
        raise UserError(f"network {str(flags.folder)!r}: NaN, expected smaller weights or features")
    columns = {
        "path": paths,
        "label": (network.class_names[k] for k in probabilities.argmax(axis=1)),
        "probability": (f"{p:.6f}" for p in probabilities.max(axis=1)),
    }
    table = io.StringIO()
    label_table.write(table, columns)
    (print_safely if sys.stdout.isatty() else print)(table.getvalue(), end="")


def _images(name: str) -> list[str]:
    """Path of a file, or of the images below a folder in order."""
    if not files.is_utf8(name):
        raise UserError(f"IMAGE {name!r}: expected a name in UTF-8")
    if not os.path.isdir(name):
        return [name]
    return [os.path.join(name, path) for path in class_folders.images_below(Path(name))]
