"""log.json, and what Chainer shows of it on a terminal or in a log file."""

from __future__ import annotations

import sys

from chainer import training
from chainer.training import extensions as chainer_extensions

from chainer_jo.training import extensions


def extend_log(trainer: training.Trainer, relabels: bool, verbose: bool) -> None:
    """Writes log.json; if `verbose`, also a table to standard output, and to a terminal a progress
    bar."""
    trainer.extend(chainer_extensions.observe_lr())
    trainer.extend(extensions.LogReport(), trigger=(1, "epoch"))
    if not verbose:
        return
    shown = ["epoch", "loss", "accuracy/noisy", "validation", "test"]
    shown += ["recovery"] if relabels else []
    on_terminal = sys.stdout.isatty()
    # Functions as triggers, which have no state: a run may have begun without showing anything.
    trainer.extend(
        chainer_extensions.PrintReport(
            [*shown, "lr", "elapsed_time"], out=sys.stdout if on_terminal else _NoTerminal()
        ),
        trigger=lambda trainer: trainer.updater.is_new_epoch,
    )
    if on_terminal:
        bar = chainer_extensions.ProgressBar(update_interval=10)
        trainer.extend(bar, trigger=lambda trainer: True)


class _NoTerminal:
    """Standard output without the code that Chainer's table begins its lines with."""

    def write(self, text: str) -> None:
        sys.stdout.write(text.replace("\033[J", ""))

    def flush(self) -> None:
        sys.stdout.flush()
