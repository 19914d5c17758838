"""Check a whole Clothing1M folder before training and, once, write its images at 256 x 256 pixels.

    python -m chainer_jo.data.prepare_clothing1m FOLDER [--write SMALL_FOLDER]

All problems are reported at once. SMALL_FOLDER has the same layout and replaces FOLDER in training.
An interrupted run resumes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial
from pathlib import Path

from PIL import Image

from chainer_jo import child_processes, files
from chainer_jo.data import clothing1m
from chainer_jo.data.clothing1m import LAYOUT, Lists
from chainer_jo.data.decoding import open_resized
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import ImageFiles
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError

JPEG_QUALITY = 95
#: Number of images per task; an interrupted process finishes its task.
CHUNK = 32


def prepare(
    root: str | Path,
    write: str | Path | None = None,
    *,
    size: int = 256,
    processes: int | None = None,
) -> Lists:
    """Checks the list files and decodes every image; with `write`, also writes small copies.

    Parameters
    ----------
    root
        Folder in the published layout.
    write
        Folder for JPEGs of `size` x `size` pixels and copies of the list files, written last, so
        that a folder with all list files is whole.
    processes
        Decoding processes; one per CPU core when None.

    Returns
    -------
    Content of the list files.

    Raises UserError, naming all kinds of problems at once, or if the destination cannot be written.
    """
    if processes is not None and processes < 1:
        raise UserError(f"--processes {processes}: expected at least 1")
    root, small = Path(root), None if write is None else Path(write)
    if small is not None and small.resolve() == root.resolve():
        raise UserError(f"--write {str(write)!r}: expected another folder than the one read")
    problems = Problems()
    lists = clothing1m.parse(root, problems)
    total = sum(lists.sizes.values())
    progress = Progress(f"checking {root}", "images", total)
    sets = (split.images for split in lists.splits.values())
    keys = (key for images in sets if isinstance(images, ImageFiles) for key in images.keys)
    check = partial(_check_image, root, small, size)
    results = child_processes.in_order(check, keys, processes, CHUNK)
    with contextlib.closing(results):
        for done, problem in enumerate(results, 1):
            if problem:
                problems.add(*problem)
            progress.update(done)
    progress.finish(total)
    problems.raise_if_any(f"Clothing1M folder {str(root)!r}")
    if small is not None:
        for name in LAYOUT:
            files.write_bytes(small / name, (root / name).read_bytes())
    return lists


def _check_image(root: Path, small: Path | None, size: int, key: str) -> tuple[str, str] | None:
    """Problem and key of an image, None without a problem."""
    if small is not None and os.path.exists(small / key):  # written whole by an earlier run
        return None
    try:
        image = open_resized(root / key, size)
    except UserError:
        missing = not os.path.exists(root / key)
        return ("image missing" if missing else "image cannot be decoded"), repr(key)
    if small is not None:
        _write(image, small / key)
    return None


def _write(image: Image.Image, path: Path) -> None:
    beside = path.with_name(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(beside, "JPEG", quality=JPEG_QUALITY)
        beside.rename(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def main(arguments: list[str] | None = None) -> None:
    """Command line; exit code 2 if there are problems, 130 if interrupted."""
    from chainer_jo.command_line import Parser, ending, say

    with ending():
        parser = Parser(description=__doc__ and __doc__.splitlines()[0])
        parser.add_argument("folder", type=Path)
        parser.add_argument("--write", type=Path, metavar="FOLDER", help="for the small copy")
        parser.add_argument("--processes", type=int, help="default: one per core")
        options = parser.parse_args(arguments)
        lists = prepare(options.folder, options.write, processes=options.processes)
        for line in lists.unlike_published():
            print(f"note: {line}", file=sys.stderr)
        sizes = ", ".join(f"{n} {name}" for name, n in lists.sizes.items())
        say(f"{options.folder}: sound; {sizes}")


if __name__ == "__main__":
    main()
