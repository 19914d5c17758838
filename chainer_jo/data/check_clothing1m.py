"""Check a whole Clothing1M folder before training: list files, and all images decoded.

    python -m chainer_jo.data.check_clothing1m FOLDER

All problems are reported at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial
from pathlib import Path

from chainer_jo import child_processes
from chainer_jo.data import clothing1m
from chainer_jo.data.clothing1m import Lists
from chainer_jo.data.decoding import open_resized
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import ImageFiles
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError

#: Pixels of a side to which training decodes an image.
SIZE = 256
#: Number of images per task; an interrupted process finishes its task.
CHUNK = 32


def check(root: str | Path, *, processes: int | None = None) -> Lists:
    """Content of the list files below ``root``, after decoding every image in ``processes`` (None:
    one per core). Raises UserError, naming all kinds of problems at once."""
    if processes is not None and processes < 1:
        raise UserError(f"--processes {processes}: expected at least 1")
    root, problems = Path(root), Problems()
    lists = clothing1m.parse(root, problems)
    total = sum(lists.sizes.values())
    progress = Progress(f"checking {root}", "images", total)
    sets = (split.images for split in lists.splits.values())
    keys = (key for images in sets if isinstance(images, ImageFiles) for key in images.keys)
    results = child_processes.in_order(partial(_check_image, root), keys, processes, CHUNK)
    with contextlib.closing(results):
        for done, problem in enumerate(results, 1):
            if problem:
                problems.add(*problem)
            progress.update(done)
    progress.finish(total)
    problems.raise_if_any(f"Clothing1M folder {str(root)!r}")
    return lists


def _check_image(root: Path, key: str) -> tuple[str, str] | None:
    """Problem and key of an image, None without a problem."""
    try:
        open_resized(root / key, SIZE)
    except UserError:
        missing = not os.path.exists(root / key)
        return ("image missing" if missing else "image cannot be decoded"), repr(key)
    return None


def main(arguments: list[str] | None = None) -> None:
    """Command line; exit code 2 if there are problems, 130 if interrupted."""
    from chainer_jo.command_line import Parser, exit_codes, print_safely

    with exit_codes():
        parser = Parser(description=__doc__ and __doc__.splitlines()[0])
        parser.add_argument("folder", type=Path)
        parser.add_argument("--processes", type=int, help="default: one per core")
        options = parser.parse_args(arguments)
        lists = check(options.folder, processes=options.processes)
        for line in lists.unlike_published():
            print(f"note: {line}", file=sys.stderr)
        sizes = ", ".join(f"{n} {name}" for name, n in lists.sizes.items())
        print_safely(f"{options.folder}: sound; {sizes}")


if __name__ == "__main__":
    main()
