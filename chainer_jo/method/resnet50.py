"""ResNet-50 (He et al. 2016), the network for Clothing1M (Section 5.2), in the two variants for
which ImageNet weights are published."""

from __future__ import annotations

from dataclasses import dataclass

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import initializers
from chainer.links.model.vision.resnet import BuildingBlock

FEATURES = 2048

#: Name, bottleneck units, width of the 3x3 convolution; every stage ends with four times its width.
STAGES = (("res2", 3, 64), ("res3", 4, 128), ("res4", 6, 256), ("res5", 3, 512))


@dataclass(frozen=True)
class Variant:
    """Differences between the two variants.

    Attributes
    ----------
    stride_in_3x3 : True if a stage halves its input in the 3x3 convolution, False in the 1x1.
    pool_pad : zero padding of the first max pooling; with 0 the last window may be cut off.
    eps : eps of batch normalisation.
    channels : order of the colour channels.
    mean, std : per channel, in [0, 255]; subtracted, then divided by.
    """

    stride_in_3x3: bool
    pool_pad: int
    eps: float
    channels: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


VARIANTS = {
    # The authors' Caffe model, and Chainer's ResNet50Layers, which takes its weights.
    "original": Variant(
        stride_in_3x3=False,
        pool_pad=0,
        eps=2e-5,
        channels="BGR",
        mean=(103.063, 115.903, 123.152),
        std=(1.0, 1.0, 1.0),
    ),
    "torchvision": Variant(
        stride_in_3x3=True,
        pool_pad=1,
        eps=1e-5,
        channels="RGB",
        mean=(123.675, 116.28, 103.53),
        std=(58.395, 57.12, 57.375),
    ),
}


class ResNet50(chainer.Chain):
    """ResNet-50, with the parameter names of `chainer.links.ResNet50Layers`.

    The first convolution has no bias, which batch normalisation would cancel.

    Parameters
    ----------
    num_classes : outputs of the last layer.
    variant : ``original`` (stride in the 1x1 convolutions) or ``torchvision`` (in the 3x3).
    rng : generator of the initial weights; None for NumPy's global one.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        variant: str = "original",
        rng: np.random.RandomState | None = None,
    ) -> None:
        super().__init__()
        self.variant = VARIANTS[variant]
        in_channels = 64
        with self.init_scope():
            self.conv1 = L.Convolution2D(
                3, in_channels, 7, 2, 3, nobias=True, initialW=initializers.HeNormal(rng=rng)
            )
            self.bn1 = L.BatchNormalization(in_channels)
            for name, units, width in STAGES:
                stride = 1 if name == "res2" else 2
                initial = initializers.HeNormal(rng=rng), self.variant.stride_in_3x3
                stage = BuildingBlock(units, in_channels, width, 4 * width, stride, *initial)
                setattr(self, name, stage)
                in_channels = 4 * width
            self.fc6 = L.Linear(FEATURES, num_classes, initialW=initializers.LeCunNormal(rng=rng))
        for link in self.links():
            if isinstance(link, L.BatchNormalization):
                link.eps = self.variant.eps

    def pool5(self, x: chainer.Variable) -> chainer.Variable:
        """Features (n, 2048) of prepared images (n, 3, h, w) float32, h and w at least 32."""
        h = F.relu(self.bn1(self.conv1(x)))
        pad = self.variant.pool_pad
        h = F.max_pooling_2d(h, 3, stride=2, pad=pad, cover_all=pad == 0)
        for name, _, _ in STAGES:
            h = self[name](h)
        return F.mean(h, axis=(2, 3))

    def forward(self, x: chainer.Variable) -> chainer.Variable:
        """Logits (n, num_classes) of prepared images (n, 3, h, w) float32."""
        return self.fc6(self.pool5(x))
