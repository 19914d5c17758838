"""Chainer's LogReport for epochs that may be very short."""

import time
from pathlib import Path

from chainer.training import Trainer, extensions

from chainer_jo import files

#: Seconds before the file is written again.
INTERVAL = 5.0


class LogReport(extensions.LogReport):
    """Chainer's `LogReport` of what is reported at the end of an epoch, whose file, with all epochs
    so far, is written at the end of training and now and then before.

    Written after each of many short epochs, ever longer, it would slow them down.

    Parameters
    ----------
    filename : JSON file in the trainer's folder.
    interval : least time between two writes, in seconds.
    """

    def __init__(self, filename: str = "log.json", interval: float = INTERVAL) -> None:
        super().__init__()
        self._log_name = None  # the base class writes no file
        self._filename = filename
        self._interval = interval
        self._due = 0.0
        self._path: Path | None = None

    def initialize(self, trainer: Trainer) -> None:
        """Where the file is; known even if nothing is left to train after a snapshot is loaded."""
        self._path = Path(trainer.out) / self._filename

    def __call__(self, trainer: Trainer) -> None:
        super().__call__(trainer)
        if time.monotonic() >= self._due:
            self.finalize()
            self._due = time.monotonic() + self._interval

    def finalize(self) -> None:
        """Writes the file; the trainer calls this whenever it stops."""
        if self._path is not None:
            files.write_json(self._path, self.log)
