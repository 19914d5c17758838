"""The step of `JointUpdater` on a batch in parts, on one rank or many."""

from __future__ import annotations

import json
from collections.abc import Sequence

import chainer
import numpy as np

from chainer_jo.training.iterator import Batch
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD
from chainer_jo.training.ranks import Ranks, counts
from chainer_jo.training.sharding import ShardedIterator, Shards
from chainer_jo.training.streamed_images import StreamedImages
from chainer_jo.training.updaters.joint_updater import JointUpdater


class SharedMomentumSGD(FlatMomentumSGD):
    """`FlatMomentumSGD` on the mean of the gradients of a batch's parts, on all ranks."""

    def __init__(self, *args, ranks: Ranks, parts: int, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._ranks = ranks
        self._parts = parts

    def step(self) -> None:
        """Averages ``gradients``, so far summed over this rank's parts, and applies them."""
        self.gradients *= np.float32(1 / self._parts)
        self._ranks.average(self.gradients)
        super().step()


class ShardedUpdater(JointUpdater):
    """Every rank trains on its own images with labels of its own; the network is the same on all.

    Reports what `JointUpdater` does, over all ranks; images without a known true label are left out
    of ``accuracy/true``. Unlike there, the state may be saved after any step.

    Parameters
    ----------
    iterator, images, labels, noisy_labels, true_labels : of this rank's images.
    shards, ranks : how the images are divided, and among whom.
    """

    def __init__(
        self,
        iterator: ShardedIterator,
        optimizer: SharedMomentumSGD,
        images: StreamedImages,
        labels: LabelStore,
        noisy_labels,
        true_labels,
        shards: Shards,
        ranks: Ranks,
        device=None,
    ) -> None:
        super().__init__(iterator, optimizer, images, labels, noisy_labels, true_labels, device)
        self.shards = shards
        self.ranks = ranks

    def step(self, parts: Sequence[Batch]) -> None:
        """Forward and backward through each part, then one update with the mean gradient."""
        model, objective = self.model, self.model.objective
        model.cleargrads()
        for part in parts:
            indices = self.input_device.send(part.indices)
            loss = model(self.images.augmented(part), self.labels.labels[indices])
            self.get_optimizer("main").backward(loss)
            self.labels.write(indices, objective.probabilities)
            for name, value in objective.terms.items():
                self._sums[name] = self._sums.get(name, 0.0) + value
        self.get_optimizer("main").update()

    def _report(self) -> None:
        total = self._steps * self.shards.number
        report = {name: value / total for name, value in self._global_sums().items()}
        predicted = self.labels.probabilities.argmax(axis=1)
        for name, labels in self._references.items():
            right, known = self.ranks.sum(counts(predicted, labels))
            if known:
                report[f"accuracy/{name}"] = float(right / known)
        chainer.report(report)
        self._sums = {}
        self._steps = 0

    def _global_sums(self) -> dict[str, float]:
        names = sorted(self._sums)
        sums = self.ranks.sum(np.array([float(self._sums[name]) for name in names]))
        return dict(zip(names, sums.tolist(), strict=True))

    def serialize(self, serializer) -> None:
        """Saves or loads the state of this rank; all ranks call it together."""
        super().serialize(serializer)
        self._steps = serializer("steps", self._steps)
        saved = json.loads(serializer("sums", json.dumps(self._global_sums())))
        if isinstance(serializer, chainer.Deserializer):
            # The sums of all ranks go on in the first one's.
            self._sums = {name: self.ranks.is_first * value for name, value in saved.items()}
