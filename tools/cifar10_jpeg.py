"""CIFAR-10 as JPEG files, made from the official archive: a tar of ``train/<class>/NNNN.jpg``.

    python tools/cifar10_jpeg.py cifar-10-python.tar.gz cifar10-jpeg.tar.xz

Pillow's JPEG of quality 75, whose colours have half the resolution (4:2:0) and differ a little by
encoder; images are numbered within their class, in the archive's order. Prints the fingerprint of
the decoded tar, which results are bound to.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.command_line import Parser, exit_codes, print_safely
from chainer_jo.data import cifar10, image_folder
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.data.source import CIFAR10_JPEG
from chainer_jo.errors import UserError

QUALITY, SUBSAMPLING = 75, "4:2:0"
_COMPRESSION = {".tar": "", ".gz": "gz", ".bz2": "bz2", ".xz": "xz"}


def jpeg_files(data: LabelledData) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all files, ``train/airplane/0000.jpg`` first."""
    for part, each in data.sets.items():
        for k, name in enumerate(data.class_names):
            for number, image in enumerate(each.images[each.labels == k]):
                yield f"{part}/{name}/{number:04}.jpg", _encoded(image)


def _encoded(image: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=QUALITY, subsampling=SUBSAMPLING)
    return out.getvalue()


def write(data: LabelledData, path: Path) -> None:
    """Writes the tar, compressed by the ending of its name; the same images give the same tar.

    Raises UserError for an unknown ending, or if the file cannot be written.
    """
    if path.suffix not in _COMPRESSION:
        endings = ", ".join(_COMPRESSION)
        raise UserError(f"{path}: expected a name that ends in one of {endings}")

    def save(file) -> None:
        mode: Any = f"w:{_COMPRESSION[path.suffix]}"  # the hint lists all modes one by one
        with tarfile.open(fileobj=file, mode=mode) as archive:
            for name, content in jpeg_files(data):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    files.write(path, save)


def main(arguments: list[str] | None = None) -> None:
    """Command line; exit code 2 for bad input."""
    with exit_codes():
        parser = Parser(description=__doc__.splitlines()[0])
        parser.add_argument("archive", type=Path, help="the official cifar-10-python.tar.gz")
        parser.add_argument("tar", type=Path, help="written: .tar, .tar.gz, .tar.bz2 or .tar.xz")
        options = parser.parse_args(arguments)
        data = cifar10.load_archive(options.archive)
        write(data, options.tar)
        made = image_folder.load(options.tar, CIFAR10_JPEG)
        number = sum(map(len, made.sets.values()))
        print_safely(f"{options.tar}: {number} images, fingerprint {made.fingerprint()}")


if __name__ == "__main__":
    main()
