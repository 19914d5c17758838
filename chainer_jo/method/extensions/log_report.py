"""Training log: log.json, Chainer's table and a progress bar."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from chainer.training import Trainer, extensions

from chainer_jo import files

#: Minimum seconds between two writes of the file.
INTERVAL = 5.0


class LogReport(extensions.LogReport):
    """Chainer's `LogReport`, whose file is written at the end of training, and before at most every
    `INTERVAL` seconds: epochs may be very short, and the file grows with each."""

    def __init__(self) -> None:
        super().__init__()
        self._log_name = None  # the base class writes no file
        self._due = 0.0

    def initialize(self, trainer: Trainer) -> None:
        """Sets the file's path, also if a loaded snapshot leaves nothing to train."""
        self._path = Path(trainer.out) / "log.json"

    def __call__(self, trainer: Trainer) -> None:
        super().__call__(trainer)
        if time.monotonic() >= self._due:
            self.finalize()
            self._due = time.monotonic() + INTERVAL

    def finalize(self) -> None:
        """Writes the file; the trainer calls this whenever it stops."""
        files.write_json(self._path, self.log)


def extend_log(trainer: Trainer, relabels: bool, verbose: bool) -> None:
    """Adds log.json to a trainer; if `verbose`, also a table, and on a terminal a progress bar."""
    trainer.extend(extensions.observe_lr())
    trainer.extend(LogReport(), trigger=(1, "epoch"))
    if not verbose:
        return
    shown = ["epoch", "loss", "accuracy/noisy", "validation", "test"]
    shown += ["recovery"] if relabels else []
    on_terminal = sys.stdout.isatty()
    # Functions as triggers, which have no state: a run may have begun without showing anything.
    trainer.extend(
        extensions.PrintReport(
            [*shown, "lr", "elapsed_time"], out=sys.stdout if on_terminal else _NoTerminal()
        ),
        trigger=lambda trainer: trainer.updater.is_new_epoch,
    )
    if on_terminal:
        bar = extensions.ProgressBar(update_interval=10)
        trainer.extend(bar, trigger=lambda trainer: True)


class _NoTerminal:
    """Standard output without the terminal code that begins each line of Chainer's table."""

    def write(self, text: str) -> None:
        sys.stdout.write(text.replace("\033[J", ""))

    def flush(self) -> None:
        sys.stdout.flush()
