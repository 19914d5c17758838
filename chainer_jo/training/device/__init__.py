"""Training on a GPU: CUDA kernels, and a training step as a CUDA graph."""

from chainer import backends

from chainer_jo.training.device import kernels
from chainer_jo.training.device.graph_step import GraphStep

__all__ = ["GraphStep", "is_on_gpu", "kernels"]


def is_on_gpu(array) -> bool:
    """Whether an array is CuPy's."""
    return isinstance(array, backends.cuda.ndarray)
