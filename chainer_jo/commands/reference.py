"""What the commands share that know of two folders: what was computed, and what is committed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from chainer_jo.commands.ending import ending
from chainer_jo.commands.options import Parser


def parser(description: str) -> Parser:
    """A parser of ``--preset``, ``--results`` and ``--reference``."""
    flags = Parser(description=description, allow_abbrev=False)
    flags.add_argument(
        "--preset", default="digits", help="the folder's name below the two others (digits)"
    )
    flags.add_argument(
        "--results", type=Path, default=Path("results"), help="what was computed (results)"
    )
    flags.add_argument(
        "--reference",
        type=Path,
        default=Path("results/reference"),
        help="what is committed (results/reference)",
    )
    return flags


def run(command: Callable[[], bool]) -> None:
    """Ends the process: 0 or 1 as the command returns, 2 with one line for bad input."""
    with ending():
        sys.exit(0 if command() else 1)
