"""The paper's network as a Chainer user would write it, with Chainer's own parts alone."""

from __future__ import annotations

from collections.abc import Callable

import chainer
import chainer.functions as F
import chainer.links as L
from chainer.datasets import TupleDataset
from chainer.iterators import SerialIterator
from chainer.optimizer_hooks import WeightDecay
from chainer.optimizers import MomentumSGD
from chainer.training import StandardUpdater
from workload import CLASSES, LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, Workload


def _conv(in_channels: int, out_channels: int, ksize: int, stride: int = 1) -> L.Convolution2D:
    initial = chainer.initializers.HeNormal()
    return L.Convolution2D(
        in_channels, out_channels, ksize, stride, ksize // 2, nobias=True, initialW=initial
    )


class Unit(chainer.Chain):
    """BN-ReLU-conv-BN-ReLU-conv plus a shortcut."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, project: bool) -> None:
        super().__init__()
        self.project = project
        with self.init_scope():
            self.bn1 = L.BatchNormalization(in_channels)
            self.conv1 = _conv(in_channels, out_channels, 3, stride)
            self.bn2 = L.BatchNormalization(out_channels)
            self.conv2 = _conv(out_channels, out_channels, 3)
            if project:
                self.shortcut = _conv(in_channels, out_channels, 1, stride)

    def forward(self, x):
        h = F.relu(self.bn1(x))
        shortcut = self.shortcut(h) if self.project else x
        return self.conv2(F.relu(self.bn2(self.conv1(h)))) + shortcut


class Network(chainer.Sequential):
    """Table 4's layers, logits out."""

    def __init__(self, workload: Workload) -> None:
        channels = workload.widths[0]
        layers = [_conv(workload.images.shape[-1], channels, 3)]
        for stage, (units, width) in enumerate(zip(workload.units, workload.widths, strict=True)):
            for unit in range(units):
                stride = 2 if stage and not unit else 1
                layers.append(Unit(channels, width, stride, project=not unit))
                channels = width
        layers += [L.BatchNormalization(channels), F.relu, _pool, L.Linear(channels, CLASSES)]
        super().__init__(*layers)


def _pool(x):
    return F.mean(x, axis=(2, 3))


def stock_step(workload: Workload, device: str = "@numpy") -> Callable[[], None]:
    """One iteration: a StandardUpdater fed by a SerialIterator, softmax cross entropy."""
    model = L.Classifier(Network(workload))
    model.to_device(device)
    optimizer = MomentumSGD(LEARNING_RATE, MOMENTUM).setup(model)
    optimizer.add_hook(WeightDecay(WEIGHT_DECAY))
    dataset = TupleDataset(workload.inputs, workload.labels)
    iterator = SerialIterator(dataset, workload.batch_size)
    return StandardUpdater(iterator, optimizer, device=device).update
