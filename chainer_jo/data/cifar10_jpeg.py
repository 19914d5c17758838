"""CIFAR-10 as JPEG files, made from the official archive: a tar of ``train/<class>/NNNN.jpg``.

    python -m chainer_jo.data.cifar10_jpeg cifar-10-python.tar.gz cifar10-jpeg.tar.xz

Pillow's JPEG of quality 75, whose colours have half the resolution (4:2:0) and differ a little by
encoder; images are numbered within their class, in the archive's order. Prints the fingerprint of
the decoded tar, which results are bound to. ``--check`` compares an existing tar, image by image.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.data import cifar10, image_folder
from chainer_jo.data.image_data import PARTS, ImageData
from chainer_jo.errors import UserError

NAME = "cifar10-jpeg"
QUALITY, SUBSAMPLING = 75, "4:2:0"
_COMPRESSION = {".tar": "", ".gz": "gz", ".bz2": "bz2", ".xz": "xz"}


def load() -> ImageData:
    """Raises UserError, since there is no download."""
    raise UserError(
        f"data {NAME!r}: expected its path; python -m chainer_jo.data.cifar10_jpeg makes it "
        "from the official archive"
    )


def jpeg_files(data: ImageData) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all files, ``train/airplane/0000.jpg`` first."""
    for part in PARTS:
        images, labels = data.part(part)
        for k, name in enumerate(data.class_names):
            for number, image in enumerate(images[labels == k]):
                yield f"{part}/{name}/{number:04}.jpg", _encoded(image)


def _encoded(image: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=QUALITY, subsampling=SUBSAMPLING)
    return out.getvalue()


def write(data: ImageData, path: Path) -> None:
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


def differing(data: ImageData, other: ImageData) -> int:
    """Number of images of `other`, read from a tar of this kind, that differ from JPEGs of `data`.

    Raises UserError if classes or numbers of images differ.
    """
    for part in PARTS:
        sizes = [np.bincount(d.part(part)[1]).tolist() for d in (data, other)]
        if data.class_names != other.class_names or sizes[0] != sizes[1]:
            raise UserError(
                f"{other.name}, {part}: {dict(zip(other.class_names, sizes[1], strict=False))} "
                f"images, expected {dict(zip(data.class_names, sizes[0], strict=False))}"
            )
    theirs = (
        image
        for images, labels in map(other.part, PARTS)
        for k in range(other.num_classes)
        for image in images[labels == k]
    )
    return sum(
        not np.array_equal(np.asarray(Image.open(io.BytesIO(content))), image)
        for (_, content), image in zip(jpeg_files(data), theirs, strict=True)
    )


def main(arguments: list[str] | None = None) -> None:
    """Command line; exit code 1 if `--check` finds a difference, 2 for bad input."""
    from chainer_jo.command_line import Parser, exit_codes, print_safely

    with exit_codes():
        parser = Parser(description=__doc__ and __doc__.splitlines()[0])
        add = parser.add_argument
        add("archive", type=Path, help="the official cifar-10-python.tar.gz")
        add("tar", type=Path, help="what to write: .tar, .tar.gz, .tar.bz2 or .tar.xz")
        add("--check", action="store_true", help="compare the tar, do not write it")
        options = parser.parse_args(arguments)
        data = cifar10.load_archive(options.archive)
        if options.check:
            count = differing(data, image_folder.load(options.tar, options.tar.name))
            print_safely(f"{options.tar}: {count} images are not those made from {options.archive}")
            sys.exit(1 if count else 0)
        write(data, options.tar)
        made = image_folder.load(options.tar, NAME)
        number = len(made.true_labels) + len(made.test_labels)
        print_safely(f"{options.tar}: {number} images, fingerprint {made.fingerprint()}")


if __name__ == "__main__":
    main()
