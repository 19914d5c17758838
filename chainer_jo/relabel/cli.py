"""The command ``chainer-jo``."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata

from chainer_jo.command_line import exit_codes
from chainer_jo.errors import UserError

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
    with exit_codes():
        name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
        if name in ("", "-h", "--help"):
            print(USAGE, end="")
            sys.exit(0 if name else 2)
        if name == "--version":
            print("chainer-jo", metadata.version("chainer_jo"))
            sys.exit(0)
        if name not in COMMANDS:
            raise UserError(f"command {name!r}: expected {', '.join(COMMANDS)}")
        importlib.import_module(COMMANDS[name]).main(rest)
