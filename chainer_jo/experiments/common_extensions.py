"""The extensions that runs of every kind have."""

from __future__ import annotations

from collections.abc import Sequence

from chainer import training
from chainer.training import extensions as chainer_extensions
from chainer.training.triggers import ManualScheduleTrigger

from chainer_jo.training import extensions


def extend_training(
    trainer: training.Trainer, best: extensions.BestEpoch, drops: Sequence[int]
) -> None:
    """Keeps the best epoch, stops a run that diverges, and divides the learning rate by 10 after
    each of the epochs `drops`."""
    trainer.extend(best, name="BestEpoch")
    trainer.extend(extensions.StopWhenDiverged(), name="StopWhenDiverged")
    if drops:
        trainer.extend(
            chainer_extensions.ExponentialShift("lr", 0.1),
            trigger=ManualScheduleTrigger(list(drops), "epoch"),
        )


def extend_log(trainer: training.Trainer, relabels: bool, verbose: bool) -> None:
    """Writes log.json; if `verbose`, also a table and a progress bar to the terminal."""
    trainer.extend(chainer_extensions.observe_lr())
    trainer.extend(extensions.LogReport(), trigger=(1, "epoch"))
    if verbose:
        shown = ["epoch", "loss", "accuracy/noisy", "validation", "test"]
        shown += ["recovery"] if relabels else []
        trainer.extend(chainer_extensions.PrintReport([*shown, "lr", "elapsed_time"]))
        trainer.extend(chainer_extensions.ProgressBar(update_interval=10))
