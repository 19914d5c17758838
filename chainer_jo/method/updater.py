"""Updating theta with Y fixed (Section 4.1): SGD on the loss of eq. 5."""

from __future__ import annotations

import json
from typing import Any

import chainer
import numpy as np
from chainer import backend
from chainer.backends import cuda
from chainer.training import StandardUpdater

from chainer_jo.engine.cuda.graph_step import GraphStep
from chainer_jo.errors import UserError
from chainer_jo.method.accuracy import accuracy
from chainer_jo.method.images import Images
from chainer_jo.method.iterator import Batch
from chainer_jo.method.objectives import Classifier
from chainer_jo.method.optimizers import FlatMomentumSGD, Passes
from chainer_jo.method.soft_labels import SoftLabels


class JointUpdater(StandardUpdater):
    """One SGD step on L(theta, Y | X) per batch; its forward pass also collects s for the update of
    Y at the end of the epoch.

    Reports, per epoch, the mean of the loss and of each of its terms over the steps, and the
    agreement of the network's latest predictions with the noisy labels (``accuracy/noisy``) and
    with the known true labels (``accuracy/true``).

    Parameters
    ----------
    iterator : yields each `Batch`.
    optimizer : set up with the `Classifier` to train; of Chainer's own, activations are float32.
    images : training images X.
    labels : the labels Y.
    noisy_labels, true_labels : (n,) int32, negative if unknown, or None; for the reports only.
    graph : True to capture the step as a CUDA graph, and replay it.

    Attributes
    ----------
    steps_of_epoch : steps since the epoch began.

    Raises UserError if iterator and images differ in padding, or for a graph of another optimizer
    than `FlatMomentumSGD`.
    """

    def __init__(
        self,
        iterator: chainer.dataset.Iterator,
        optimizer: chainer.Optimizer,
        images: Images,
        labels: SoftLabels,
        noisy_labels=None,
        true_labels=None,
        graph: bool = False,
    ) -> None:
        super().__init__(iterator, optimizer)
        pads = [each.pad for each in (iterator, images) if hasattr(each, "pad")]
        if len(set(pads)) > 1:
            raise UserError(
                f"the iterator crops with padding {pads[0]}, the images have padding {pads[1]}; "
                "expected the same padding"
            )
        if graph and not isinstance(optimizer, FlatMomentumSGD):
            name = type(optimizer).__name__
            raise UserError(f"CUDA graph with {name}: expected FlatMomentumSGD, or no graph")
        self._passes = optimizer if isinstance(optimizer, Passes) else Passes()
        self.images = images
        self.labels = labels
        references = {"noisy": noisy_labels, "true": true_labels}
        self._references = {k: labels for k, labels in references.items() if labels is not None}
        self._sums: dict[str, Any] = {}
        self.steps_of_epoch = 0
        self._began = False
        self._graph = GraphStep(self._step, cuda.cupy) if graph else None

    @property
    def replays(self) -> int:
        """Number of steps that were replays of a CUDA graph."""
        return 0 if self._graph is None else self._graph.replays

    @property
    def model(self) -> Classifier:
        """Network and objective."""
        return self.get_optimizer("main").target

    def update_core(self) -> None:
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        if not self._began:  # whether new or resumed
            self.model.objective.start_epoch(iterator.epoch)
            self._began = True
        batch = iterator.next()
        fetched = self.images.fetch(batch, iterator)
        if self._graph is None:
            self.step(batch, *fetched)
        else:
            optimizer.send_lr()
            self._graph(*vars(batch).values(), *fetched)
            optimizer.t = self.iteration + 1  # a replay does not count
        self.steps_of_epoch += 1
        if iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)
            changed = self.model.objective.start_epoch(iterator.epoch)
            if self._graph is not None and changed:
                self._graph.forget()
            self._report()

    def _step(self, indices, dy, dx, flips, *fetched) -> None:
        self.step(Batch(indices, dy, dx, flips), *fetched)

    def step(self, batch: Batch, *fetched) -> None:
        """Forward pass, backward pass and update of theta, without waiting for the device."""
        model, optimizer = self.model, self.get_optimizer("main")
        x = self.images.augmented(batch, *fetched)
        labels = self.labels.soft_labels[batch.indices]
        model.cleargrads()
        with self._passes.whole_step():
            loss = model(x, labels)
            self._passes.backward(loss)
            self.labels.write(batch.indices, self._probabilities(labels.shape))
            for name, value in model.objective.terms.items():
                total = self._sum(name)
                total += value
        optimizer.update()

    def _probabilities(self, shape: tuple[int, ...]):
        """The objective's s of the batch. Raises UserError for another shape, which would be
        broadcast into the labels."""
        objective = self.model.objective
        if (found := objective.probabilities.shape) != shape:
            loss = type(objective).__name__
            raise UserError(f"loss {loss}: probabilities have shape {found}, expected {shape}")
        return objective.probabilities

    def _sum(self, name: str):
        """Sum of a term of the loss over the epoch, a 0-d array float32."""
        if name not in self._sums:
            xp = backend.get_array_module(self.labels.soft_labels)
            self._sums[name] = xp.zeros((), np.float32)
        return self._sums[name]

    def _report(self) -> None:
        report = {name: float(total) / self.steps_of_epoch for name, total in self._sums.items()}
        predicted = self.labels.probabilities.argmax(axis=-1)
        for name, labels in self._references.items():
            agreeing = accuracy(predicted, labels)
            if agreeing is not None:
                report[f"accuracy/{name}"] = agreeing
        chainer.report(report)
        for total in self._sums.values():
            total[...] = 0  # kept, since a CUDA graph knows their addresses
        self.steps_of_epoch = 0

    def serialize(self, serializer) -> None:
        """Saves or loads iterator, optimizer, model, labels and the epoch's sums."""
        super().serialize(serializer)
        self.labels.serialize(serializer["labels"])
        self.steps_of_epoch = serializer("steps", self.steps_of_epoch)
        sums = {name: float(total) for name, total in self._sums.items()}
        saved = json.loads(serializer("sums", json.dumps(sums)))
        for name, value in saved.items():
            self._sum(name)[...] = value
