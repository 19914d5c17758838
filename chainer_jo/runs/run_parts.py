"""The parts of a run: task, network and objective of its description, and images for it."""

from __future__ import annotations

from collections.abc import Callable

import chainer
import numpy as np

from chainer_jo.data.image_data import ImageData
from chainer_jo.data.image_stream import ImageStream
from chainer_jo.data.labelled_data import ImageFiles, Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method.cnn_crf import CNNCRF
from chainer_jo.method.images import Images, NetworkInput, Preparation, StreamedImages
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import ForwardCorrection, JointObjective, Objective
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.resnet50_weights import load_resnet50
from chainer_jo.method.task import Task
from chainer_jo.runs.experiment import Experiment, Optimization
from chainer_jo.runs.presets import pretrained


def make_task(
    experiment: Experiment,
    data: ImageData | LabelledData,
    pseudo_labels: Callable[[], np.ndarray] | None = None,
) -> Task:
    """The task that a description asks for; see `Task`."""
    uniform = experiment.prior == "uniform"
    wanted, label_noise, seed = experiment.data, experiment.noise, experiment.seed
    return Task(wanted, label_noise, seed, data, pseudo_labels, uniform)


def make_network(
    experiment: Experiment,
    task: Task,
    heads: int,
    rng: np.random.RandomState,
    weights: str | None = None,
) -> chainer.Link:
    """The untrained network of ``experiment.network``.

    Parameters
    ----------
    heads : outputs per class.
    weights : file of the pretrained weights that the description names.
    """
    outputs, description = heads * task.num_classes, experiment.network
    if description.weights:
        if (given := pretrained(weights).weights) != description.weights:
            raise UserError(
                f"ResNet-50 weights {weights}: {given}, expected {description.weights}, as this "
                "run is described"
            )
        assert weights is not None  # `pretrained` raises UserError where none are given
        return load_resnet50(weights, outputs, rng=rng)
    images = task.train.images
    channels = 3 if isinstance(images, ImageFiles) else images.shape[-1]
    return PreActResNet(channels, outputs, description.units, description.widths, rng)


def make_objective(experiment: Experiment, task: Task) -> Objective:
    """The link of ``experiment.objective``; cross entropy is joint with alpha = beta = 0."""
    if experiment.objective == "forward":
        return ForwardCorrection(task.transition_matrix)
    if experiment.objective == "cnn_crf":
        return CNNCRF(task.transition_matrix, task.prior, experiment.optimization.epochs)
    return JointObjective(task.prior, experiment.alpha, experiment.beta)


class Inputs:
    """Makes `Images` of each set of a task: streamed if they are on disk, otherwise sent to the
    device whole.

    Parameters
    ----------
    network : takes the images; a pretrained one states their mean, scale and channel order.
    workers : processes that decode images on disk; None: one per core less one.
    """

    def __init__(
        self,
        optimization: Optimization,
        task: Task,
        network: chainer.Link,
        device: chainer.backend.Device,
        workers: int | None,
    ) -> None:
        self._send = device.send
        self._stream: ImageStream | None = None
        if not isinstance(task.train.images, ImageFiles):
            self._mean, self._pad = device.send(task.mean), optimization.pad
            return
        resize, crop = task.wanted.resize, task.wanted.crop
        assert resize and crop  # every preset of images on disk has both
        self._stream = ImageStream(
            optimization.batch_size, resize, crop, workers, on_cuda=device.xp is not np
        )
        variant = getattr(network, "variant", None)  # of pretrained weights
        if variant is None:
            scaling = task.mean.tolist(), (255.0,) * 3, "RGB"
        else:
            scaling = variant.mean, variant.std, variant.channels
        self._prepare = Preparation(*scaling, device.send)

    def images(self, labelled: Labelled, order: BatchIterator | None = None) -> Images:
        """The images of a set; ``order`` gives out the batches, if it is trained on."""
        images = labelled.images
        if self._stream is None or isinstance(images, np.ndarray):
            return NetworkInput(self._send(images), self._mean, self._pad)
        return StreamedImages(images, self._stream, self._prepare, order)

    def close(self) -> None:
        """Ends the processes that decode."""
        if self._stream is not None:
            self._stream.close()
