"""The oneDNN backend: convolutions and batch normalisations on a CPU, in float32 or bfloat16."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.cpu import onednn_plans as plans
from chainer_jo.engine.cpu.buffers import Buffers
from chainer_jo.engine.interface import Backend, Shape, Unavailable
from chainer_jo.errors import UserError

FLOAT32 = numpy.dtype(numpy.float32)
BYTE = numpy.dtype(numpy.uint8)


def load(precision: str) -> OneDNN:
    """The backend for "fp32" or "mixed".

    Raises Unavailable if no usable oneDNN, or for "mixed" no ml_dtypes, is installed; UserError if
    the processor cannot compute in this precision.
    """
    if precision == "tf32":
        raise UserError("precision: 'tf32' is for GPUs, expected 'fp32' or 'mixed' on a CPU")
    library = dnnl.find()
    if precision == "mixed" and not library.instructions() & dnnl.BFLOAT16_INSTRUCTIONS:
        raise UserError(
            "precision: 'mixed' needs a CPU with bfloat16 instructions (avx512_bf16 or amx_bf16), "
            "and oneDNN finds none here; expected 'fp32'"
        )
    return OneDNN(library, precision)


class OneDNN(Backend):
    """Operations on NumPy arrays by oneDNN primitives that are created once per shape.

    Results are channels-last arrays from a memory pool. Calls from several threads run one after
    the other, since a primitive owns its arguments.
    """

    name = "onednn"

    def __init__(self, library: dnnl.Library, precision: str) -> None:
        self.precision = precision
        self.library = library
        self.buffers = Buffers()
        # Separate: gradients of a recording stay while its forward pass reuses the other memory.
        self._gradients = Buffers()
        self.recordings = weakref.WeakKeyDictionary()
        self._dtype = FLOAT32 if precision == "fp32" else _bfloat16()
        self._planner = plans.Planner(
            library, self.buffers, dnnl.F32 if precision == "fp32" else dnnl.BF16
        )
        self._plans: dict[tuple, Any] = {}
        self._lock = threading.Lock()

    @property
    def versions(self):
        return {"oneDNN": ".".join(map(str, self.library.version))}

    @property
    def threads(self):
        return self.library.threads()

    def recorder(self) -> OneDNN:
        """A new backend with its own memory and its own `library.calls`."""
        recorder = OneDNN(dnnl.Library(self.library.path), self.precision)
        recorder.recordings = None
        return recorder

    def empty(self, shape: Shape) -> numpy.ndarray:
        """Images float32 (n, c, h, w), channels-last, with undefined contents."""
        return self._empty(shape, FLOAT32)

    def as_activation(self, x):
        if x.dtype != self._dtype and x.dtype.kind != "f":
            raise TypeError(f"activation: dtype {x.dtype}, expected float32")
        if not _is_channels_last(x):
            y = self._empty(x.shape, x.dtype)
            self._perform(numpy.copyto, y, x)
            x = y
        return self._converted(x, self._dtype)

    def to_float32(self, x):
        return self._converted(self._activation(x), FLOAT32)

    def spatial_mean(self, x):
        n, c, h, w = x.shape
        pixels = self.to_float32(x).transpose(0, 2, 3, 1).reshape(n, h * w, c)
        mean = self.buffers.empty((n, 1, c), FLOAT32)
        shares = numpy.full((1, h * w), 1 / (h * w), FLOAT32)
        self._perform(numpy.matmul, shares, pixels, out=mean)
        return mean[:, 0]

    def spatial_mean_grad(self, gy, x_shape):
        gx = self._empty(x_shape)
        per_pixel = self.buffers.empty(gy.shape, self._dtype)
        pixels = FLOAT32.type(gx[0, 0].size)
        self._perform(numpy.divide, gy, pixels, out=per_pixel, casting="same_kind")
        bits = f"u{self._dtype.itemsize}"
        self._perform(numpy.copyto, gx.view(bits), per_pixel.view(bits)[:, :, None, None])
        return gx

    def conv2d(self, x, W, stride, pad, residual):
        x, W = self._activation(x), _float32("W", W)
        with self._lock:
            plan = self._plan(plans.Conv2D, x.shape, W.shape, stride, pad, residual is not None)
            arrays = [x, W, self._empty(plan.y_shape)]
            if residual is not None:
                arrays.append(self._activation(residual, plan.y_shape))
            plan(*map(_address, arrays))
        return arrays[2]

    def conv2d_grad_input(self, gy, W, x_shape, stride, pad, accumulate):
        gy, W = self._activation(gy), _float32("W", W)
        gx = self._empty(x_shape)
        with self._lock:
            plan = self._plan(plans.Conv2DGradInput, x_shape, W.shape, stride, pad)
            plan(_address(gy), _address(W), _address(gx))
            return self._accumulate(gx, accumulate)

    def conv2d_grad_weight(self, x, gy, W_shape, stride, pad):
        x, gy = self._activation(x), self._activation(gy)
        gW = self._gradients.empty(W_shape, FLOAT32)
        with self._lock:
            plan = self._plan(plans.Conv2DGradWeight, x.shape, W_shape, stride, pad)
            plan(_address(x), _address(gy), _address(gW))
        return gW

    def batch_norm_relu_train(self, x, gamma, beta):
        x = self._activation(x)
        gamma, beta = _vectors(x, gamma=gamma, beta=beta)
        mean, var = (self.buffers.empty(gamma.shape, FLOAT32) for _ in range(2))
        with self._lock:
            plan = self._plan(plans.BatchNormReLU, x.shape)
            y, mask = self._empty(x.shape), self.buffers.empty((plan.mask_size,), BYTE)
            plan.forward(*map(_address, (x, y, gamma, beta, mean, var, mask)))
        return y, mean, var, (mean, var, mask)

    def batch_norm_relu_test(self, x, gamma, beta, mean, var):
        x = self._activation(x)
        vectors = _vectors(x, gamma=gamma, beta=beta, mean=mean, var=var)
        y = self._empty(x.shape)
        with self._lock:
            plan = self._plan(plans.fixed_batch_norm_relu, x.shape)
            plan(*map(_address, (x, y, *vectors)))
        return y

    def batch_norm_relu_grad(self, x, y, gamma, gy, saved, accumulate):
        mean, var, mask = saved
        x, gy, gamma = self._activation(x), self._activation(gy), _float32("gamma", gamma)
        gx = self._empty(x.shape)
        ggamma, gbeta = (self._gradients.empty(gamma.shape, FLOAT32) for _ in range(2))
        with self._lock:
            plan = self._plan(plans.BatchNormReLU, x.shape)
            plan.backward(*map(_address, (x, gy, gamma, mean, var, mask, gx, ggamma, gbeta)))
            return self._accumulate(gx, accumulate), ggamma, gbeta

    def matmul(self, a, b):
        product = self._gradients.empty((len(a), b.shape[1]), FLOAT32)
        self._perform(numpy.matmul, a, b, out=product)
        return product

    def linear(self, x, W, b):
        y = self.matmul(x, W.T)
        self._perform(numpy.add, y, b, out=y)
        return y

    def sum_of_rows(self, a):
        total = self._gradients.empty(a.shape[1:], FLOAT32)
        self._perform(numpy.sum, a, axis=0, out=total)
        return total

    def move_averages(self, running_mean, running_var, mean, var, samples):
        moving = super().move_averages
        self._perform(moving, running_mean, running_var, mean, var, samples)

    def add(self, a, b):
        a = self._activation(a)
        total, b = self._empty(a.shape), self._activation(b, a.shape)
        with self._lock:
            self._plan(plans.addition, a.shape)(_address(a), _address(b), _address(total))
        return total

    def _accumulate(self, gx, existing):
        if existing is not None:
            target, existing = _address(gx), self._activation(existing, gx.shape)
            self._plan(plans.addition, gx.shape)(target, _address(existing), target)
        return gx

    def _perform(self, function: Callable, *arguments, **options) -> None:
        """Performs a function that writes into the same arrays at every call."""
        self.library.perform(partial(function, *arguments, **options))

    def _plan(self, kind: Any, *options) -> Any:
        key = (kind, *options)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = kind(self._planner, *options)
        return plan

    def _converted(self, x: numpy.ndarray, dtype: numpy.dtype) -> numpy.ndarray:
        """Channels-last x in a float dtype: x, or a copy."""
        if x.dtype == dtype:
            return x
        if {x.dtype, dtype} != {FLOAT32, self._dtype}:
            return x.astype(dtype)  # keeps the layout
        y = self._empty(x.shape, dtype)
        with self._lock:
            self._plan(plans.conversion, x.shape, dtype == FLOAT32)(_address(x), _address(y))
        return y

    def _empty(self, shape: Shape, dtype: numpy.dtype | None = None) -> numpy.ndarray:
        n, c, h, w = shape
        return self.buffers.empty((n, h, w, c), dtype or self._dtype).transpose(0, 3, 1, 2)

    def _activation(self, x, shape: Shape | None = None) -> numpy.ndarray:
        if x.dtype != self._dtype:
            raise TypeError(f"activation: dtype {x.dtype}, expected {self._dtype}")
        if shape is not None and x.shape != shape:
            raise ValueError(f"activation: shape {x.shape}, expected {shape}")
        return x if _is_channels_last(x) else self.as_activation(x)


def _bfloat16() -> numpy.dtype:
    try:
        import ml_dtypes
    except ImportError as error:
        raise Unavailable(f"bfloat16 arrays need the package ml_dtypes ({error})") from error
    return numpy.dtype(ml_dtypes.bfloat16)


def _float32(name: str, x: numpy.ndarray) -> numpy.ndarray:
    if x.dtype != FLOAT32:
        raise TypeError(f"{name}: dtype {x.dtype}, expected float32")
    return numpy.ascontiguousarray(x)


def _vectors(x: numpy.ndarray, **named: numpy.ndarray) -> list[numpy.ndarray]:
    for name, vector in named.items():
        if vector.shape != x.shape[1:2]:
            raise ValueError(f"{name}: shape {vector.shape}, expected {x.shape[1:2]}")
    return [_float32(name, vector) for name, vector in named.items()]


def _is_channels_last(x: numpy.ndarray) -> bool:
    return x.transpose(0, 2, 3, 1).flags.c_contiguous


def _address(x: numpy.ndarray) -> int:
    return x.ctypes.data
