"""The engines that tests of functions run on: stock Chainer, oneDNN where it works, cuDNN on a
stand-in in NumPy, and cuDNN on a GPU."""

import os
from dataclasses import dataclass
from functools import partial

import chainer
import numpy as np
import pytest
from fake_cudnn import HostArrays, Library

from chainer_jo.engine.backend import choose_backend
from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.cuda import cudnn_library
from chainer_jo.engine.cuda.cudnn import CuDNN, load
from chainer_jo.engine.cuda.cudnn_choices import Choices
from chainer_jo.engine.interface import DECAY, EPS, Backend, Unavailable
from chainer_jo.errors import UserError


def backend(precision):
    """oneDNN's for "fp32" or "mixed"; skips the test where there is none."""
    try:
        return choose_backend("cpu", precision, "onednn")
    except UserError as error:
        pytest.skip(str(error))


def library():
    """oneDNN; skips the test where there is none."""
    try:
        return dnnl.find()
    except Unavailable as error:
        pytest.skip(str(error))


class NumpyKernels:
    """`cudnn_kernels` in NumPy."""

    @staticmethod
    def fixed_batch_norm_relu(x, gamma, beta, mean, var):
        z = gamma * (x.astype(np.float32) - mean) / np.sqrt(var + np.float32(EPS)) + beta
        return np.maximum(z, 0).astype(x.dtype)

    @staticmethod
    def occupy(x, passes):
        pass

    @staticmethod
    def matmul(a, b):
        return a @ b

    @staticmethod
    def arrange(weights, dtype):
        copies = [w.transpose(0, 2, 3, 1).astype(dtype, order="C") for w in weights]
        return [copy.transpose(0, 3, 1, 2) for copy in copies]

    @staticmethod
    def move_averages(layers):
        for layer in layers:
            decay, unbias = np.float32(DECAY), np.float32(layer.unbias)
            var = np.maximum(1 / (layer.inverse * layer.inverse) - np.float32(EPS), 0)
            layer.running_mean[...] = decay * layer.running_mean + (1 - decay) * layer.mean
            layer.running_var[...] = decay * layer.running_var + (1 - decay) * unbias * var


def stand_in(precision="fp32", unsupported=()):
    """cuDNN's backend on a library that computes its graphs in NumPy, and that library."""
    library = Library(*unsupported)
    choices = Choices("GPU, cuDNN 9.20.0")
    arrays = HostArrays(lambda: library.clock)
    return CuDNN(library, "handle", precision, arrays, NumpyKernels, choices), library


def obstacle() -> str:
    """Why tests cannot run on a GPU here; empty if they can."""
    if not chainer.backends.cuda.available:
        return "needs a CUDA GPU and CuPy"
    try:
        cudnn_library.load("fp32")
    except Unavailable as error:
        return f"needs a CUDA GPU with cuDNN: {error}"
    return ""


OBSTACLE = obstacle()
if OBSTACLE and os.environ.get("CHAINER_JO_NEEDS_GPU"):  # where nothing else is asked for
    raise RuntimeError(OBSTACLE)
ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]
#: Allowed relative norm of an error on a GPU.
TOLERANCE = {"fp32": 1e-4, "tf32": 3e-3, "mixed": 2e-2}


@dataclass(frozen=True)
class Engine:
    """A backend, None for stock Chainer; the allowed relative norm of its errors; its device."""

    backend: Backend | None
    tolerance: float
    device: str = "@numpy"

    def send(self, *arrays):
        return [chainer.get_device(self.device).send(array) for array in arrays]


#: Graphs of cuDNN that have no engine, by the end of the stand-in's name.
WAYS = {"": (), "-arrays": ({"add"}, {"batchnorm"}, {"batchnorm_backward"})}
#: Functions that make the engines, by name. On the stand-in tf32 is fp32: which engines it takes
#: is a test of its own.
ENGINES = {
    "stock": lambda: Engine(None, 1e-5),
    "onednn-fp32": lambda: Engine(backend("fp32"), 1e-5),
    "onednn-mixed": lambda: Engine(backend("mixed"), 2e-2),
    **{
        f"stand-in-{precision}{way}": partial(
            lambda tolerance, *how: Engine(stand_in(*how)[0], tolerance), tolerance, precision, how
        )
        for precision, tolerance in (("fp32", 2e-6), ("mixed", 2e-3))
        for way, how in WAYS.items()
    },
    **{
        f"gpu-{precision}": partial(
            lambda precision: Engine(load(precision), TOLERANCE[precision], "@cupy:0"), precision
        )
        for precision in TOLERANCE
    },
}


def engines():
    """Parameters of a fixture: names of all engines."""
    return [pytest.param(name, marks=ON_GPU if name[:3] == "gpu" else ()) for name in ENGINES]


def cases(on_cpu, of_gpu):
    """Parameters of a test: the name of an engine and a shape, by where it computes."""
    return [
        pytest.param(*name.values, shape, marks=name.marks)
        for name in engines()
        for shape in (of_gpu if name.marks else on_cpu)
    ]
