"""A training iteration of this project, as a run does it."""

from __future__ import annotations

from collections.abc import Callable

import chainer
import numpy
from workload import CLASSES, LEARNING_RATE, MOMENTUM, SEED, WEIGHT_DECAY, Missing, Workload

from chainer_jo.errors import UserError
from chainer_jo.functions import providers
from chainer_jo.links import JointObjective, PreActResNet
from chainer_jo.links.classifier import Classifier
from chainer_jo.training.images import NetworkInput
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD
from chainer_jo.training.updaters import JointUpdater

PAD = 4
ALPHA, BETA = 1.2, 0.8


def joint_step(workload: Workload, engine: str, precision: str = "fp32") -> Callable[[], None]:
    """One update of `JointUpdater` on a CPU: augmentation, the three-term loss and the label store
    are part of it.

    Raises Missing if the engine does not work here in this precision.
    """
    try:
        providers.use(providers.choose("cpu", precision, engine))
    except UserError as error:
        raise Missing(str(error)) from error
    network = PreActResNet(
        workload.images.shape[-1],
        CLASSES,
        workload.units,
        workload.widths,
        numpy.random.RandomState(SEED),
    )
    prior = numpy.full(CLASSES, 1 / CLASSES, numpy.float32)
    model = Classifier(network, JointObjective(prior, ALPHA, BETA))
    updater = JointUpdater(
        BatchIterator(len(workload.images), workload.batch_size, SEED, 1, PAD, flip=True),
        FlatMomentumSGD(LEARNING_RATE, MOMENTUM, WEIGHT_DECAY).setup(model),
        NetworkInput(workload.images, workload.mean, PAD),
        LabelStore(workload.labels, CLASSES, "soft"),
        workload.labels,
        workload.labels,
    )

    def step() -> None:
        with chainer.Reporter():  # takes what an epoch's end reports
            updater.update()

    return step
