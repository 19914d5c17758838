"""When to take a snapshot."""

import time

from chainer import training


class EpochEnd:
    """Fires at the end of an epoch, but not sooner than ``seconds`` after it last fired.

    Every end of an epoch is an equally good place to continue from, so how often a snapshot is
    taken decides only how much work a kill costs.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last = time.monotonic()

    def __call__(self, trainer: training.Trainer) -> bool:
        if not trainer.updater.is_new_epoch or time.monotonic() - self._last < self.seconds:
            return False
        self._last = time.monotonic()
        return True
