"""``chainer-jo features``: computes features of images for ``relabel --features``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from chainer_jo import files
from chainer_jo.command_line import Parser, print_safely, start
from chainer_jo.errors import UserError
from chainer_jo.relabel.command import add_table_flags, form_of


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: _parse(arguments), _compute)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="chainer-jo features",
        description="Compute features of images with a network trained on ImageNet, and write them "
        "with the paths of the images. The same command resumes a stopped computation.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("data", metavar="DATA", help="images in a format of chainer-jo relabel, or "
        "a folder with images directly in it")  # fmt: skip
    add("--out", required=True, type=Path, metavar="FILE.npz", help="output file")
    add("--resnet50-weights", dest="weights", metavar="FILE", help="ImageNet weights of ResNet-50 "
        "(npz or safetensors); default: the built-in EfficientNet-Lite0")  # fmt: skip
    add("--device", default="auto", help="cpu, cuda or cuda:N; auto: cuda if available")
    add_table_flags(parser)
    flags = parser.parse_args(arguments)
    flags.form = form_of(flags)
    return flags


def _compute(flags: argparse.Namespace) -> None:
    # They import Chainer, which help and refused flags do without.
    from chainer_jo.devices import resolve_device
    from chainer_jo.relabel.read import class_folders, image_features, labelled_images

    if flags.out.exists() or flags.out.suffix != ".npz":
        raise UserError(f"--out {flags.out}: expected a new file, whose name ends in .npz")
    device, weights = resolve_device(flags.device), flags.weights
    extractor = image_features.resnet50(weights) if weights else image_features.builtin()
    folder, sets = files.expanded(flags.data), []
    if folder.is_dir() and class_folders.is_flat(folder):  # images alone, without classes
        names, where = class_folders.images_below(folder), f"data {flags.data!r}"
        images = [f"{folder}/{name}" for name in names]
        content = image_features.compute(images, extractor, device, where, names.__getitem__)
    else:
        sets = [*labelled_images.read_sets(flags.data, form=flags.form).by_use.values()]
        content = np.concatenate([image_features.of_set(each, extractor, device) for each in sets])
        names = [path for each in sets for path in each.paths.tolist()]
    paths = np.array(names)
    if flags.out.exists():
        raise UserError(f"--out {flags.out}: was written meanwhile, expected another name")
    files.write(flags.out, lambda file: np.savez(file, features=content, paths=paths))
    print_safely(f"written: {flags.out}: {len(paths):,} images, {extractor.words}")
