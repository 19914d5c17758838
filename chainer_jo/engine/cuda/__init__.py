"""CUDA: cuDNN behind convolutions and batch normalisation, own kernels, a captured step."""

from typing import Any

from chainer import backends


def is_on_gpu(array: Any) -> bool:
    """Whether an array is CuPy's."""
    return isinstance(array, backends.cuda.ndarray)
