"""Stops a run between two epochs, with everything saved, when its time is up."""

import time

from chainer import training


class Paused(Exception):
    """The run stopped before its end and can be continued."""


class Pause(training.Extension):
    """Ends training with `Paused` at the end of the first epoch that is over at or after
    ``deadline``.

    Parameters
    ----------
    deadline : a value of ``time.monotonic()``, in seconds.
    snapshot : the snapshot extension, called before the end.
    """

    trigger = 1, "epoch"
    # Last: the log has been written, and the snapshot must hold all that happened in this epoch.
    priority = -200

    def __init__(self, deadline: float, snapshot: training.Extension) -> None:
        self.deadline = deadline
        self.snapshot = snapshot

    def __call__(self, trainer: training.Trainer) -> None:
        if time.monotonic() >= self.deadline:
            self.snapshot(trainer)
            raise Paused
