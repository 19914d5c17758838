"""Progress bar of a long job, one line on stderr."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from chainer_jo.errors import escaped

_WIDTH = 30


def is_live(stream: TextIO) -> bool:
    """True for a terminal that goes back on its line."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """A bar if stderr is a terminal, otherwise a line every ten seconds.

    Parameters
    ----------
    what : name of the job, first on the line.
    unit : unit of the count, such as "images".
    total : final count.
    """

    def __init__(self, what: str, unit: str, total: int) -> None:
        self._what = escaped(what)
        self._unit = unit
        self.total = total
        self._live = is_live(sys.stderr)
        self._interval = 0.1 if self._live else 10.0
        self._next = time.monotonic() + self._interval

    def update(self, done: int) -> None:
        """Shows the count; cheap, so call it often."""
        if time.monotonic() >= self._next:
            self._show(done)
            self._next = time.monotonic() + self._interval

    def finish(self, done: int) -> None:
        """Shows the final count and ends the line."""
        self._show(done)
        if self._live:
            print(file=sys.stderr)

    def _show(self, done: int) -> None:
        fraction = min(done / max(self.total, 1), 1)
        line = f"{self._what}: {done:,} of {self.total:,} {self._unit}"
        line += f" [{'#' * int(fraction * _WIDTH):.<{_WIDTH}}] {fraction:.0%}"
        if self._live:
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)
