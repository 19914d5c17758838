"""CUDA: cuDNN behind convolutions and batch normalisation, own kernels, a captured step."""

from typing import Any

from chainer import backends


def is_on_gpu(array: Any) -> bool:
    """True for a CuPy array."""
    return isinstance(array, backends.cuda.ndarray)
