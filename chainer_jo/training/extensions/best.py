"""Best/last bookkeeping: the epoch with the highest validation accuracy, and the weights of that
epoch."""

import chainer
import numpy as np
from chainer import serializers, training


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
        serializer = serializers.DictionarySerializer()
        serializer.save(self.model)
        return {name: np.array(array) for name, array in serializer.target.items()}

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
