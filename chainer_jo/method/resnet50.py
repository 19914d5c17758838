"""ResNet-50 (He et al. 2016), the network for Clothing1M (Section 5.2), in the two variants for
which ImageNet weights are published: Chainer's .npz, or a torchvision-named .safetensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import initializers
from chainer.links.model.vision.resnet import BuildingBlock
from chainer.serializers import NpzDeserializer, npz

from chainer_jo import files
from chainer_jo.errors import UserError, one_line

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


HOW_TO_GET = (
    "a .npz written by chainer.links.ResNet50Layers.convert_caffemodel_to_npz from the authors' "
    "ResNet-50-model.caffemodel, or a torchvision resnet50 saved as .safetensors"
)

IMAGENET_CLASSES = 1000

#: Variant by the ending of the weights' file.
VARIANT_OF = {".npz": "original", ".safetensors": "torchvision"}

#: Chainer's names of torchvision's arrays, of a batch normalisation and of other layers. The number
#: of batches that a batch normalisation has seen is not used.
_BATCH_NORMALISATION = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "avg_mean",
    "running_var": "avg_var",
    "num_batches_tracked": "N",
}
_OTHERS = {"weight": "W", "bias": "b"}


def chainers_name(name: str) -> str:
    """Chainer's name of one of torchvision's arrays.

    >>> chainers_name("layer1.0.downsample.1.weight"), chainers_name("layer4.2.conv3.weight")
    ('res2/a/bn4/gamma', 'res5/b2/conv3/W')
    """
    for theirs, ours in (("downsample.0", "conv4"), ("downsample.1", "bn4"), ("fc.", "fc6.")):
        name = name.replace(theirs, ours)
    if match := re.match(r"layer(\d)\.(\d+)\.", name):
        stage, unit = map(int, match.groups())
        name = f"res{stage + 1}/{f'b{unit}' if unit else 'a'}/{name[match.end() :]}"
    link, _, array = name.rpartition(".")
    arrays = _BATCH_NORMALISATION if "bn" in link else _OTHERS
    return f"{link}/{arrays.get(array, array)}"


def load_resnet50(
    path: str | Path, num_classes: int = IMAGENET_CLASSES, rng: np.random.RandomState | None = None
) -> ResNet50:
    """A `ResNet50` with the weights of a file.

    Parameters
    ----------
    path : Chainer's ``.npz`` or a ``.safetensors`` with torchvision's names.
    num_classes : other than ImageNet's 1000, the last layer keeps its initial weights.
    rng : for the initial weights of the last layer.

    Raises UserError if the file cannot be read, or does not hold exactly the arrays of this
    network.
    """
    path = Path(path)
    network = ResNet50(num_classes, variant_of(path), rng)
    weights = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)

    def used(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        unused = ("fc6/",) if num_classes != IMAGENET_CLASSES else ()
        return {
            name: array
            for name, array in arrays.items()
            if not (name.startswith(unused) or name.endswith("/N"))
        }

    found = used(weights)
    try:
        files.check_arrays(found, used(npz.serialize(network)))
    except ValueError as error:
        raise UserError(f"ResNet-50 weights {path}: {error}") from None
    NpzDeserializer(found, strict=False).load(network)
    return network


def variant_of(path: str | Path) -> str:
    """Variant of a file of weights. Raises UserError if there is no such file."""
    path = Path(path)
    if not path.is_file():
        raise UserError(f"ResNet-50 weights {path}: no such file, expected {HOW_TO_GET}")
    if path.suffix not in VARIANT_OF:
        raise UserError(f"ResNet-50 weights {path}: expected {HOW_TO_GET}")
    return VARIANT_OF[path.suffix]


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Arrays of Chainer's file. The first convolution's bias, which the Caffe model has, goes into
    the running mean of the batch normalisation after it."""
    try:
        arrays = files.arrays(path)
        bias, mean = arrays.get("conv1/b"), arrays.get("bn1/avg_mean")
        if bias is not None and mean is not None and bias.shape == mean.shape:
            arrays["bn1/avg_mean"] = mean - arrays.pop("conv1/b")
        return arrays
    except Exception as error:  # a damaged header can raise anything
        raise UserError(
            f"ResNet-50 weights {path}: {one_line(error)}, expected a whole .npz file"
        ) from None


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    try:
        from safetensors.numpy import load_file
    except ImportError:
        missing = "safetensors is not installed; run pip install 'chainer_jo[weights]'"
        raise UserError(f"ResNet-50 weights {path}: {missing}") from None
    try:
        return {chainers_name(name): array for name, array in load_file(path).items()}
    except Exception as error:  # a damaged header can raise anything
        raise UserError(
            f"ResNet-50 weights {path}: {one_line(error)}, "
            "expected a whole .safetensors file of float32 or float16"
        ) from None
