"""One SGD step of the method, and the batch's probabilities handed to the label store."""

import chainer
import numpy as np
from chainer import backend
from chainer.backends import cuda
from chainer.training import StandardUpdater

from chainer_jo.links.classifier import Classifier
from chainer_jo.training.device import GraphStep
from chainer_jo.training.images import NetworkInput
from chainer_jo.training.iterator import Batch, BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD


class JointUpdater(StandardUpdater):
    """Updates theta with Y fixed (Section 4.1) and collects s for the update of Y, all in one
    forward pass.

    Nothing is copied to the host within an epoch; at its end the means over the epoch's iterations
    of the loss and of each of its terms are reported, and the shares of images whose latest
    prediction agrees with the noisy (``accuracy/noisy``) and with the true labels
    (``accuracy/true``).

    Parameters
    ----------
    iterator : gives out `Batch` es.
    optimizer : set up with the `Classifier` to train.
    images : the training images.
    labels : their labels.
    noisy_labels, true_labels : (n,) int32, on the device, for the report alone.
    device : as in Chainer.
    graph : whether the step is captured as a CUDA graph and replayed.
    """

    def __init__(
        self,
        iterator: BatchIterator,
        optimizer: FlatMomentumSGD,
        images: NetworkInput,
        labels: LabelStore,
        noisy_labels,
        true_labels,
        device=None,
        graph: bool = False,
    ) -> None:
        super().__init__(iterator, optimizer, device=device)
        self.images = images
        self.labels = labels
        self._references = {"noisy": noisy_labels, "true": true_labels}
        self._sums = {}
        self._steps = 0
        self._graph = (
            GraphStep(lambda *arrays: self.step(Batch(*arrays)), cuda.cupy) if graph else None
        )

    @property
    def model(self) -> Classifier:
        """The link that is trained."""
        return self.get_optimizer("main").target

    def update_core(self) -> None:
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        batch = iterator.next()
        if self._graph is None:
            self.step(batch)
        else:
            optimizer.send_lr()
            self._graph(*vars(batch).values())
            optimizer.t = self.iteration + 1  # a replay does not count
        self._steps += 1
        if iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)
            self._start_epoch(iterator.epoch)
            self._report()

    def _start_epoch(self, epoch: int) -> None:
        changed = self.model.objective.start_epoch(epoch)
        if self._graph is not None and changed:
            self._graph.forget()

    def step(self, batch) -> None:
        """Forward, backward, update; no host synchronisation."""
        optimizer = self.get_optimizer("main")
        objective = self.model.objective
        optimizer.update(
            self.model, self.images.augmented(batch), self.labels.labels[batch.indices]
        )
        self.labels.write(batch.indices, objective.probabilities)
        for name, value in objective.terms.items():
            if name not in self._sums:
                self._sums[name] = backend.get_array_module(value).zeros((), value.dtype)
            self._sums[name] += value

    def _report(self) -> None:
        predicted = self.labels.probabilities.argmax(axis=1)
        right = {
            f"accuracy/{name}": (predicted == labels).mean()
            for name, labels in self._references.items()
        }
        totals = {**self._sums, **right}
        xp = backend.get_array_module(predicted)
        # All of them in one transfer.
        on_device = xp.stack([xp.asarray(value, np.float64) for value in totals.values()])
        report = dict(zip(totals, backend.CpuDevice().send(on_device).tolist(), strict=True))
        for name in self._sums:
            report[name] /= self._steps
        chainer.report(report)
        for total in self._sums.values():
            total[...] = 0  # kept, since a CUDA graph knows their addresses
        self._steps = 0

    def serialize(self, serializer) -> None:
        """Saves or loads the iterator, the optimizer, the model and the labels; to be called
        between epochs."""
        super().serialize(serializer)
        self.labels.serialize(serializer["labels"])
