"""Algorithm 1, alternating optimisation of network parameters theta and labels Y:

    for t = 1 to num_epochs                                            chainer.training.Trainer
        update theta by SGD on L(theta, Y | X)                         JointUpdater
            X: batches in random order, cropped and flipped            BatchIterator, Images
            L = L_c + alpha L_p + beta L_e (eq. 5)                     Classifier, JointObjective
            SGD with momentum and weight decay                         FlatMomentumSGD
        update Y by eq. 8 (hard labels) or eq. 9 (soft labels)         LabelUpdate, SoftLabels

`first_step` runs it on the noisy labels. `second_step` trains a new network on the labels of the
first step, which stay fixed (Section 4.3). Both return the trainer: callers extend it with
evaluation, log and checkpoints, and run it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict, Unpack

from chainer.training import Trainer
from chainer.training.extensions import ExponentialShift
from chainer.training.triggers import ManualScheduleTrigger

from chainer_jo.errors import UserError
from chainer_jo.method.extensions import LabelUpdate
from chainer_jo.method.images import Images, StreamedImages
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import Classifier
from chainer_jo.method.optimization import Optimization
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.method.updater import JointUpdater


class Further(TypedDict, total=False):
    """Keywords of both steps.

    Parameters
    ----------
    seed : of order and augmentation, 0 by default; the caller draws the weights.
    noisy_labels, true_labels : int32 (n,), NumPy arrays, negative if unknown; for the reports only.
    graph : True to capture the step on a GPU as a CUDA graph.
    out : folder of the trainer's extensions, ``result`` by default.
    """

    seed: int
    noisy_labels: Any
    true_labels: Any
    graph: bool
    out: str | Path


def first_step(
    model: Classifier,
    images: Images,
    labels: SoftLabels,
    optimization: Optimization,
    start: int,
    stop: int,
    **further: Unpack[Further],
) -> Trainer:
    """Trainer of the first step (eq. 4), not yet run: updates theta in every epoch, and Y after the
    epochs from ``start`` to ``stop``.

    Parameters
    ----------
    model : theta and L; on its device.
    images : X, n training images on the model's device, or on disk.
    labels : Y and the rule of its update, on the model's device; at first the noisy labels.
    optimization : SGD; ``pad`` is the images'.
    start, stop : t1 and t2, the first and the last epoch with an update of Y (70 and 200 on
        CIFAR-10).
    further : see `Further`.

    ``trainer.updater.model`` and ``trainer.updater.labels`` hold theta and Y. Raises UserError
    for fewer images than one batch, another ``pad``, or images on disk with ``pad`` or ``flip``.
    """
    trainer = _trainer(1, model, images, labels, optimization, **further)
    trainer.extend(LabelUpdate(start, stop, model.device.send(further.get("true_labels"))))
    return trainer


def second_step(
    model: Classifier,
    images: Images,
    labels: SoftLabels,
    optimization: Optimization,
    **further: Unpack[Further],
) -> Trainer:
    """Trainer of the second step (eq. 3), not yet run; parameters as in `first_step`.

    ``labels`` are the labels of the first step, and stay fixed. A baseline (cross entropy, Forward,
    CNN-CRF) is this step on noisy labels, with its own objective in the model.
    """
    return _trainer(2, model, images, labels, optimization, **further)


def _trainer(
    step: int,
    model: Classifier,
    images: Images,
    labels: SoftLabels,
    optimization: Optimization,
    seed: int = 0,
    noisy_labels: Any = None,
    true_labels: Any = None,
    graph: bool = False,
    out: str | Path = "result",
) -> Trainer:
    o, send = optimization, model.device.send
    if isinstance(images, StreamedImages) and (o.pad or o.flip):
        raise UserError(f"images on disk with pad {o.pad}, flip {o.flip}: expected neither")
    iterator = BatchIterator(len(images), o.batch_size, seed, step, o.pad, o.flip, send)
    optimizer = FlatMomentumSGD(o.learning_rate, o.momentum, o.weight_decay).setup(model)
    updater = JointUpdater(
        iterator, optimizer, images, labels, send(noisy_labels), send(true_labels), graph=graph
    )
    trainer = Trainer(updater, (o.epochs, "epoch"), out)
    if o.drops:
        drops = ManualScheduleTrigger(list(o.drops), "epoch")
        trainer.extend(ExponentialShift("lr", 0.1), trigger=drops)
    return trainer
