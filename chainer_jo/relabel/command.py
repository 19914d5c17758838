"""``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse

from chainer_jo.command_line import start
from chainer_jo.relabel.flags import parse


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: parse(arguments), _work)


def _work(flags: argparse.Namespace) -> None:
    from chainer_jo.relabel import correction  # imports Chainer, which help and refusals do without

    correction.relabel(flags)
