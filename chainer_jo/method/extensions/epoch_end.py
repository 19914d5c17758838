"""End-of-epoch extensions: label update, best epoch, stop on divergence, log."""

from __future__ import annotations

import math
import time
from pathlib import Path

import chainer
import numpy as np
from chainer import serializers, training
from chainer.training import Trainer, extensions

from chainer_jo import files
from chainer_jo.method.accuracy import accuracy


class LabelUpdate(training.Extension):
    """Updates Y with theta fixed (Algorithm 1) at the end of epochs t1 to t2 (Section 5.2).

    Reports ``recovery``, the label accuracy (in the paper: recovery accuracy).

    Parameters
    ----------
    start : t1, first epoch with an update (70 on CIFAR-10); 0 is the same as 1.
    stop : t2, last epoch with an update.
    true_labels : (n,) int32, negative if unknown, on the labels' device; None reports nothing.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(self, start: int, stop: int, true_labels=None) -> None:
        self.start = start
        self.stop = stop
        self.true_labels = true_labels

    def __call__(self, trainer: training.Trainer) -> None:
        labels = trainer.updater.labels
        labels.end_epoch()
        if self.start <= trainer.updater.epoch <= self.stop:
            labels.update()
        if self.true_labels is None:
            return
        recovery = accuracy(labels.soft_labels.argmax(axis=-1), self.true_labels)
        if recovery is not None:
            chainer.report({"recovery": recovery})


class BestEpoch(training.Extension):
    """The ``best`` of the paper's tables: the first epoch with the highest validation accuracy.

    Attributes
    ----------
    epoch : counted from 1; 0 before the first.
    validation : validation accuracy of this epoch, in [0, 1].

    Parameters
    ----------
    model : model in training.
    keep_weights : True to keep the model's weights, for `restore`.
    """

    trigger = 1, "epoch"
    # After the reports of this epoch, before the log and the snapshot are written.
    priority = training.PRIORITY_EDITOR

    def __init__(self, model: chainer.Link, keep_weights: bool) -> None:
        self.model = model
        self.keep_weights = keep_weights
        self.epoch = 0
        self.validation = -1.0
        self._weights = self._copy() if keep_weights else {}

    def _copy(self) -> dict[str, np.ndarray]:
        arrays = serializers.npz.serialize(self.model)
        return {name: np.array(array) for name, array in arrays.items()}

    def __call__(self, trainer: training.Trainer) -> None:
        validation = trainer.observation["validation"]
        if validation > self.validation:
            self.epoch = trainer.updater.epoch
            self.validation = validation
            if self.keep_weights:
                self._weights = self._copy()

    def restore(self) -> None:
        """Loads the weights of the best epoch into the model."""
        serializers.NpzDeserializer(self._weights).load(self.model)

    def serialize(self, serializer) -> None:
        self.epoch = serializer("epoch", self.epoch)
        self.validation = serializer("validation", self.validation)
        weights = serializer["weights"]
        for name, array in self._weights.items():
            self._weights[name] = weights(name.replace("/", "."), array)


class Diverged(Exception):
    """The loss or a parameter became NaN or infinite.

    Attributes
    ----------
    epoch : counted from 1.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the loss or a parameter was not finite in epoch {epoch}")
        self.epoch = epoch


class StopWhenDiverged(training.Extension):
    """Raises `Diverged` at the end of an epoch if its mean loss or a parameter is not finite: not
    every engine passes a NaN on to the loss."""

    trigger = 1, "epoch"
    priority = training.PRIORITY_EDITOR

    def __call__(self, trainer: training.Trainer) -> None:
        finite = trainer.updater.get_optimizer("main").is_finite()
        if not (finite and math.isfinite(trainer.observation["loss"])):
            raise Diverged(trainer.updater.epoch)


#: Minimum seconds between two writes of the file.
INTERVAL = 5.0


class LogReport(extensions.LogReport):
    """Chainer's `LogReport`, whose file is written at the end of training, and before at most every
    `INTERVAL` seconds: epochs may be very short, and the file grows with each."""

    def __init__(self) -> None:
        super().__init__()
        self._log_name = None  # the base class writes no file
        self._due = 0.0

    def serialize(self, serializer) -> None:
        super().serialize(serializer)
        if not all(isinstance(entry, dict) for entry in self._log):
            raise ValueError("log of another form")

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
