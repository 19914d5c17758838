"""What networks are made of, each one function over interchangeable providers."""

from chainer_jo.functions.batch_norm_relu import batch_norm_relu
from chainer_jo.functions.conv2d import conv2d
from chainer_jo.functions.network_ends import as_activation, linear, spatial_mean
from chainer_jo.functions.replayed import replayed

__all__ = [
    "as_activation",
    "batch_norm_relu",
    "conv2d",
    "linear",
    "replayed",
    "spatial_mean",
]
