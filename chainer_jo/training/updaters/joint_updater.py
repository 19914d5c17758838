"""One SGD step of the method, and the batch's probabilities handed to the label store."""

import chainer
from chainer.training import StandardUpdater

from chainer_jo.links.classifier import Classifier
from chainer_jo.training.images import NetworkInput
from chainer_jo.training.iterator import BatchIterator
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
    labels : their labels. noisy_labels, true_labels: (n,) int32, on the device, for the report
        alone.
    device : as in Chainer.
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
    ) -> None:
        super().__init__(iterator, optimizer, device=device)
        self.images = images
        self.labels = labels
        self._references = {"noisy": noisy_labels, "true": true_labels}
        self._sums = {}
        self._steps = 0

    @property
    def model(self) -> Classifier:
        """The link that is trained."""
        return self.get_optimizer("main").target

    def update_core(self) -> None:
        iterator = self.get_iterator("main")
        self.step(iterator.next())
        self._steps += 1
        if iterator.is_new_epoch:
            self.get_optimizer("main").new_epoch(auto=True)
            self.model.objective.start_epoch(iterator.epoch)
            self._report()

    def step(self, batch) -> None:
        """Forward, backward, update; no host synchronisation."""
        optimizer = self.get_optimizer("main")
        objective = self.model.objective
        optimizer.update(
            self.model, self.images.augmented(batch), self.labels.labels[batch.indices]
        )
        self.labels.write(batch.indices, objective.probabilities)
        for name, value in objective.terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def _report(self) -> None:
        report = {name: float(total) / self._steps for name, total in self._sums.items()}
        predicted = self.labels.probabilities.argmax(axis=1)
        for name, labels in self._references.items():
            report[f"accuracy/{name}"] = float((predicted == labels).mean())
        chainer.report(report)
        self._sums = {}
        self._steps = 0

    def serialize(self, serializer) -> None:
        """Saves or loads the iterator, the optimizer, the model and the labels; to be called
        between epochs."""
        super().serialize(serializer)
        self.labels.serialize(serializer["labels"])
