"""A training iteration of this project, as a run does it."""

from __future__ import annotations

from collections.abc import Callable

import chainer
import numpy
from workload import (
    CLASSES,
    EPOCH,
    LEARNING_RATE,
    MOMENTUM,
    SEED,
    WEIGHT_DECAY,
    Missing,
    Workload,
    tiled,
)

from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.engine.cuda import graph_step
from chainer_jo.errors import UserError
from chainer_jo.method.images import Images
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.method.updater import JointUpdater

PAD = 4
ALPHA, BETA = 1.2, 0.8


def joint_step(
    workload: Workload,
    engine: str,
    precision: str = "fp32",
    device: str = "cpu",
    graph: bool = False,
) -> Callable[[], None]:
    """One update of `JointUpdater`: augmentation, the three-term loss and the label store are part
    of it. On a GPU (`device` "cuda") as a CUDA graph or not.

    Raises Missing if the engine does not work here in this precision, or is not captured.
    """
    try:
        backend = choose_backend(device, precision, engine)
    except UserError as error:
        raise Missing(str(error)) from error
    use_backend(backend)
    target = chainer.get_device("@numpy" if device == "cpu" else "@cupy:0")
    if device == "cuda":
        workload = tiled(workload, EPOCH)
    send = target.send
    network = PreActResNet(
        workload.images.shape[-1],
        CLASSES,
        workload.units,
        workload.widths,
        numpy.random.RandomState(SEED),
    )
    prior = numpy.full(CLASSES, 1 / CLASSES, numpy.float32)
    model = Classifier(network, JointObjective(prior, ALPHA, BETA))
    model.to_device(target)
    labels = send(workload.labels)
    updater = JointUpdater(
        BatchIterator(len(workload.images), workload.batch_size, SEED, 1, PAD, True, send),
        FlatMomentumSGD(LEARNING_RATE, MOMENTUM, WEIGHT_DECAY).setup(model),
        Images(send(workload.images), send(workload.mean), PAD),
        SoftLabels(workload.labels, CLASSES, "soft", xp=target.xp),
        labels,
        labels,
        graph,
    )

    def step() -> None:
        with chainer.Reporter():  # takes what an epoch's end reports
            updater.update()

    if graph:
        for _ in range(graph_step.WARM_UP + 1):
            step()
        if not updater.replays:
            raise Missing("no step was captured")
    return step
