"""What an epoch ends with: the labels are updated, the best epoch is noted, a run whose loss is not
finite is ended."""

import math

import chainer
import numpy as np
from chainer import backend, serializers, training

from chainer_jo.method.extensions.evaluation import accuracy


class LabelUpdate(training.Extension):
    """Updates Y with theta fixed (Section 4.1), at the end of every epoch from ``start`` to
    ``stop``, both included.

    Reports ``recovery``, the share of labels whose arg max is the true class where it is known.

    Parameters
    ----------
    start : t1, the first epoch at whose end the labels are updated (70 in the paper); 0 is the same
        as 1.
    stop : t2, the last one.
    true_labels : (n,) int32, on the device of the labels, negative where not known, for the report
        alone; None: it goes without.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(self, start: int, stop: int, true_labels=None) -> None:
        self.start = start
        self.stop = stop
        self.true_labels = true_labels

    def __call__(self, trainer: training.Trainer) -> None:
        store = trainer.updater.labels
        store.end_epoch()
        if self.start <= trainer.updater.epoch <= self.stop:
            store.update()
        if self.true_labels is None:
            return
        recovery = accuracy(store.labels.argmax(axis=-1), self.true_labels)
        if recovery is not None:
            chainer.report({"recovery": recovery})


class BestEpoch(training.Extension):
    """Keeps the first epoch with the highest validation accuracy, and that epoch's model.

    Attributes
    ----------
    epoch : that epoch, counted from 1; 0 before the first.
    validation : its validation accuracy, in [0, 1].

    Parameters
    ----------
    model : what is trained.
    keep_weights : whether the model's weights are kept, for `restore`.
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
        """Gives the model the weights of the best epoch."""
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
    epoch : the epoch, counted from 1, whose mean loss it was, or at whose end.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the loss or a parameter was not finite in epoch {epoch}")
        self.epoch = epoch


class StopWhenDiverged(training.Extension):
    """Ends training with `Diverged` at the end of an epoch whose mean loss, or after which a
    parameter, is not finite: not every engine passes a NaN on to the loss."""

    trigger = 1, "epoch"
    priority = training.PRIORITY_EDITOR

    def __call__(self, trainer: training.Trainer) -> None:
        params = [p.array for p in trainer.updater.get_optimizer("main").target.params()]
        finite = all(bool(backend.get_array_module(p).isfinite(p).all()) for p in params)
        if not (finite and math.isfinite(trainer.observation["loss"])):
            raise Diverged(trainer.updater.epoch)
