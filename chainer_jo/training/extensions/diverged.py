"""Ends a run whose loss is NaN or infinite."""

import math

from chainer import training


class Diverged(Exception):
    """The loss became NaN or infinite.

    Attributes
    ----------
    epoch : the epoch, counted from 1, whose mean loss it was.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the loss was not finite in epoch {epoch}")
        self.epoch = epoch


class StopWhenDiverged(training.Extension):
    """Ends training with `Diverged` at the end of an epoch whose mean loss is not finite."""

    trigger = 1, "epoch"
    priority = training.PRIORITY_EDITOR

    def __call__(self, trainer: training.Trainer) -> None:
        if not math.isfinite(trainer.observation["loss"]):
            raise Diverged(trainer.updater.epoch)
