"""The command ``chainer-jo``."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata

USAGE = """\
usage: chainer-jo COMMAND ...

Learning with noisy labels on your own images.

  relabel DATA --out FOLDER       correct the labels of images
  predict FOLDER IMAGE...         classify images with the network trained by relabel
  features DATA --out FILE.npz    only compute features, for relabel --features
  example FOLDER                  write an example set with noisy labels

chainer-jo COMMAND --help lists the flags; chainer-jo --version prints the version.
"""
#: Modules with a function `main`, imported when needed: all of Chainer takes a second.
COMMANDS = {
    "relabel": "chainer_jo.relabel.command",
    "predict": "chainer_jo.relabel.predict",
    "features": "chainer_jo.relabel.extract",
    "example": "chainer_jo.relabel.example",
}


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process with 0, 2 (bad input) or 130 (interrupted)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        print("chainer-jo", metadata.version("chainer_jo"))
        sys.exit(0)
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"error: command {name!r}: expected {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    importlib.import_module(COMMANDS[name]).main(rest)
