"""PreAct ResNet-32 (Appendix A, Table 4), the network for CIFAR-10."""

from collections.abc import Sequence

import chainer
import chainer.links as L
import numpy as np
from chainer import initializers

from chainer_jo.engine.functions import as_activation, batch_norm_relu, conv2d, linear, spatial_mean
from chainer_jo.engine.replayed import replayed
from chainer_jo.errors import UserError


class Convolution(chainer.Link):
    """A convolution without bias, padded so that stride 1 keeps the size; ``ksize`` is odd.

    Called on (n, in_channels, h, w), and optionally on a residual of the output's shape that is
    added to it.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        ksize: int,
        stride: int = 1,
        rng: np.random.RandomState | None = None,
    ) -> None:
        super().__init__()
        self.stride = stride
        self.pad = ksize // 2
        with self.init_scope():
            self.W = chainer.Parameter(
                initializers.HeNormal(rng=rng), (out_channels, in_channels, ksize, ksize)
            )

    def forward(
        self, x: chainer.Variable, residual: chainer.Variable | None = None
    ) -> chainer.Variable:
        return conv2d(x, self.W, self.stride, self.pad, residual)


class BatchNormReLU(chainer.Link):
    """Batch normalisation followed by ReLU, with Chainer's defaults (decay 0.9, eps 2e-5) and its
    parameter names.

    The running variance starts at 0 as in Chainer 2.1.0, which the paper used (at 1 from 5 on).
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        with self.init_scope():
            self.gamma = chainer.Parameter(initializers.One(), size)
            self.beta = chainer.Parameter(initializers.Zero(), size)
        self.add_persistent("avg_mean", np.zeros(size, np.float32))
        self.add_persistent("avg_var", np.zeros(size, np.float32))

    def forward(self, x: chainer.Variable) -> chainer.Variable:
        return batch_norm_relu(x, self.gamma, self.beta, self.avg_mean, self.avg_var)


class PreActUnit(chainer.Chain):
    """BN-ReLU-conv3x3-BN-ReLU-conv3x3 plus a shortcut; the first unit of a stage projects its first
    BN-ReLU by a 1x1."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int,
        project: bool,
        rng: np.random.RandomState | None,
    ) -> None:
        super().__init__()
        self.project = project
        with self.init_scope():
            self.bn1 = BatchNormReLU(in_channels)
            self.conv1 = Convolution(in_channels, out_channels, 3, stride, rng)
            self.bn2 = BatchNormReLU(out_channels)
            self.conv2 = Convolution(out_channels, out_channels, 3, 1, rng)
            if project:
                self.shortcut = Convolution(in_channels, out_channels, 1, stride, rng)

    def forward(self, x: chainer.Variable) -> chainer.Variable:
        h = self.bn1(x)
        residual = self.shortcut(h) if self.project else x
        return self.conv2(self.bn2(self.conv1(h)), residual)


class PreActResNet(chainer.Chain):
    """PreAct ResNet of the paper: conv, stages of pre-activation units, BN-ReLU, global average
    pool, dense.

    The defaults are Table 4's:

    >>> f"{PreActResNet().count_params():,}"
    '1,861,162'

    Parameters
    ----------
    in_channels : channels of the images (3 for CIFAR-10).
    num_classes : size of the output, c.
    units : number of units of each stage; the first of a stage has a projection shortcut.
    widths : filters of each stage; every stage except the first halves the image.
    rng : generator of the weights (He-normal for convolutions, Chainer's default for the dense
        layer).

    Raises UserError if units and widths are empty, of unequal length or not positive.
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        units: Sequence[int] = (5, 5, 5),
        widths: Sequence[int] = (32, 64, 128),
        rng: np.random.RandomState | None = None,
    ) -> None:
        if not units or len(units) != len(widths) or min(*units, *widths) < 1:
            raise UserError(
                f"units {tuple(units)} and widths {tuple(widths)}: "
                "expected as many positive widths as stages"
            )
        super().__init__()
        with self.init_scope():
            self.conv = Convolution(in_channels, widths[0], 3, 1, rng)
            self.stages = chainer.ChainList()
            self.pool = BatchNormReLU(widths[-1])
            self.dense = L.Linear(
                widths[-1], num_classes, initialW=initializers.LeCunNormal(rng=rng)
            )
        channels = widths[0]
        for stage, (count, width) in enumerate(zip(units, widths, strict=True)):
            for unit in range(count):
                stride = 2 if stage > 0 and unit == 0 else 1
                self.stages.append(PreActUnit(channels, width, stride, unit == 0, rng))
                channels = width

    def forward(self, x: chainer.Variable) -> chainer.Variable:
        """Maps images (n, in_channels, h, w) float32 to logits (n, num_classes) float32."""
        return replayed(self._layers, self, x)

    def _layers(self, x: chainer.Variable) -> chainer.Variable:
        h = self.conv(as_activation(x))
        for unit in self.stages:
            h = unit(h)
        return linear(spatial_mean(self.pool(h)), self.dense.W, self.dense.b)
