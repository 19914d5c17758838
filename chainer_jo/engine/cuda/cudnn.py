"""The cuDNN backend: convolutions and batch normalisations on a GPU, in float32, TF32 or float16.

"mixed" is float16, not bfloat16: it rounds eight times finer, CuPy has it natively, and it is the
type of cuDNN's fused engines on Hopper. Its small range needs a scaled loss. Weights, statistics
and gradients of parameters are float32 at the interface in every precision.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy

from chainer_jo.engine.cuda import cudnn_choices, cudnn_kernels, cudnn_library
from chainer_jo.engine.cuda import cudnn_plans as plans
from chainer_jo.engine.cuda.cudnn_kernels import Moved
from chainer_jo.engine.cuda.cudnn_planner import Plan, Planner
from chainer_jo.engine.cuda.cudnn_plans import address as _address
from chainer_jo.engine.interface import EPS, Backend, Shape
from chainer_jo.errors import UserError

FLOAT32 = numpy.dtype(numpy.float32)
#: Scalars that cuDNN reads from host memory whenever a plan runs.
BATCH_NORM_EPS, BATCH_NORM_MOMENTUM = numpy.full(1, EPS, FLOAT32), numpy.ones(1, FLOAT32)

#: Alignment of tensors in bytes, which cudnn-frontend promises to cuDNN.
ALIGNMENT = 16
#: Loss scale in "mixed", a power of two for exact division. Gradients of a mean over a batch and an
#: image are far below float16's smallest normal number, 6e-5; scaled, they are in its range.
LOSS_SCALE = 1024.0


@dataclass
class _Step:
    """State of `CuDNN.step`; dictionaries by address of the weights."""

    #: Weights with the activations' type and memory layout.
    arranged: dict[int, Any]
    #: Placeholders that Chainer gets for the gradients kept here.
    placeholders: dict[int, Any]
    gradients: dict[int, Any]
    moved: list[Moved]


def load(precision: str) -> CuDNN:
    """Backend for "fp32", "tf32" or "mixed", on the current device.

    Raises Unavailable if a library is missing or does not match, or the GPU lacks the precision.
    """
    library, handle = cudnn_library.load(precision)
    import cupy

    choices = cudnn_choices.of(cudnn_library.machine(library, cupy))
    return CuDNN(library, handle, precision, cupy, cudnn_kernels, choices)


class CuDNN(Backend):
    """Operations on CuPy arrays, on CuPy's current stream, with workspaces from its memory pool.

    Parameters
    ----------
    library, handle : module ``cudnn`` and its handle, destroyed with the backend or at exit. A
        backend keeps its plans: have one per process and precision.
    precision : "fp32", "tf32" or "mixed".
    xp : CuPy, or its substitute in a test.
    kernels : module `cudnn_kernels`, or its substitute.
    choices : plan choices of this GPU and cuDNN.
    """

    name = "cudnn"

    def __init__(
        self,
        library: ModuleType,
        handle: Any,
        precision: str,
        xp: Any,
        kernels: Any,
        choices: cudnn_choices.Choices,
    ) -> None:
        self.precision = precision
        self.loss_scale = LOSS_SCALE if precision == "mixed" else 1.0
        self._library = library
        self._handle = handle
        weakref.finalize(self, library.destroy_handle, handle)
        self._xp = xp
        self._kernels = kernels
        self._planner = Planner(library, handle, precision, choices)
        self._dtype = numpy.dtype(numpy.float16 if precision == "mixed" else numpy.float32)
        self._stream: Any = None
        self._unused_averages: dict[int, Any] = {}
        self._current_step: _Step | None = None

    @property
    def versions(self):
        return {"cuDNN": cudnn_library.dotted(self._library.backend_version())}

    def bind_plan_cache(self, folder):
        self._planner.keep_in(folder)

    @property
    def choices(self):
        return self._planner.digest

    def as_activation(self, x):
        if x.dtype.kind != "f":
            raise TypeError(f"activation: dtype {x.dtype}, expected {self._dtype}")
        return self._nhwc(x)

    def to_float32(self, x):
        return x.astype(FLOAT32, copy=False)

    def conv2d(self, x, W, stride, pad, residual):
        x, W = self._activation("x", x), self._weights(W)
        geometry = x.shape, W.shape, stride, pad
        y = self._empty(plans.output_shape(*geometry))
        if residual is not None:
            residual = self._activation("residual", residual, y.shape)
        arrays = {"x": x, "W": W, "y": y}
        return self._convolve(plans.convolution, geometry, arrays, y, residual)

    def conv2d_grad_input(self, gy, W, x_shape, stride, pad, accumulate):
        geometry = tuple(x_shape), W.shape, stride, pad
        gy = self._activation("gy", gy, plans.output_shape(*geometry))
        gx = self._empty(x_shape)
        if accumulate is not None:
            accumulate = self._activation("accumulate", accumulate, gx.shape)
        arrays = {"gy": gy, "W": self._weights(W), "gx": gx}
        return self._convolve(plans.convolution_grad_input, geometry, arrays, gx, accumulate)

    def conv2d_grad_weight(self, x, gy, W_shape, stride, pad):
        x = self._activation("x", x)
        geometry = x.shape, tuple(W_shape), stride, pad
        gy = self._activation("gy", gy, plans.output_shape(*geometry))
        gW = self._empty(W_shape)
        plan = self._planner.plan(plans.convolution_grad_weight, *geometry)
        self._run(_engine_for(plan, geometry), {"x": x, "gy": gy, "gW": gW})
        return gW

    def gradient_of(self, W, gradient, accumulate):
        step, address = self._current_step, _address(W)
        if step is None or address not in step.placeholders:
            gradient = gradient.astype(FLOAT32, order="C", copy=False)
            return gradient if accumulate is None else gradient + accumulate
        if address in step.gradients:
            # The weights are used twice, and the placeholder has been returned already.
            gradient = self.add(step.gradients[address], gradient)
        step.gradients[address] = gradient
        return step.placeholders[address]

    @contextmanager
    def step(self, weights):
        arranged = self._kernels.arrange([W for W, _ in weights], self._dtype)
        addresses = [_address(W) for W, _ in weights]
        self._current_step = _Step(
            dict(zip(addresses, arranged, strict=True)),
            dict(zip(addresses, (placeholder for _, placeholder in weights), strict=True)),
            {},
            [],
        )
        try:
            yield self._current_step.gradients
            if self._current_step.moved:
                self._kernels.move_averages(self._current_step.moved)
        finally:
            self._current_step = None

    def batch_norm_relu_train(self, x, gamma, beta):
        x, gamma, beta = self._activation("x", x), self._vector(gamma), self._vector(beta)
        plan = self._planner.plan(plans.batch_norm, x.shape)
        if plan is None:
            rows, mean, inverse = _normalise(self._xp, self._rows(x), gamma, beta)
            y = self._from_rows(rows, x.shape)
        else:
            y = self._empty(x.shape)
            mean, inverse = self._vectors(gamma.size)
            average_mean, average_var = self._averages(gamma.size)
            self._run(plan, {
                "x": x, "gamma": gamma, "beta": beta, "y": y, "mean": mean, "inverse": inverse,
                "average_mean": average_mean, "next_average_mean": average_mean,
                "average_var": average_var, "next_average_var": average_var,
                "eps": BATCH_NORM_EPS, "momentum": BATCH_NORM_MOMENTUM,
            })  # fmt: skip
        return y, mean, inverse, (mean, inverse, beta)

    def batch_norm_relu_test(self, x, gamma, beta, mean, var):
        x = self._activation("x", x)
        vectors = (self._vector(v) for v in (gamma, beta, mean, var))
        return self._kernels.fixed_batch_norm_relu(self._view(x), *vectors).transpose(0, 3, 1, 2)

    def batch_norm_relu_grad(self, x, y, gamma, gy, saved, accumulate):
        mean, inverse, beta = saved
        x, gy = self._activation("x", x), self._activation("gy", gy, x.shape)
        gamma = self._vector(gamma)
        plan = self._planner.plan(plans.batch_norm_grad, x.shape)
        if plan is None:
            activations = map(self._rows, (x, y, gy))
            rows, ggamma, gbeta = _normalise_grad(*activations, gamma, mean, inverse)
            gx = self._from_rows(rows, x.shape)
        else:
            gx = self._empty(x.shape)
            ggamma, gbeta = self._vectors(gamma.size)
            self._run(plan, {
                "x": x, "gy": gy, "gamma": gamma, "beta": beta, "mean": mean, "inverse": inverse,
                "gx": gx, "ggamma": ggamma, "gbeta": gbeta,
            })  # fmt: skip
        return (gx if accumulate is None else self.add(gx, accumulate)), ggamma, gbeta

    def move_averages(self, running_mean, running_var, mean, inverse, samples):
        moved = Moved(running_mean, running_var, mean, inverse, samples / max(samples - 1, 1))
        if self._current_step is None:
            self._kernels.move_averages([moved])
            return
        # A layer that is called twice moves twice, one after the other.
        if any(
            _address(m.running_mean) == _address(running_mean) for m in self._current_step.moved
        ):
            self._kernels.move_averages(self._current_step.moved)
            self._current_step.moved.clear()
        self._current_step.moved.append(moved)

    def matmul(self, a, b):
        return self._kernels.matmul(a, b)

    def add(self, a, b):
        a, b = self._activation("a", a), self._activation("b", b, a.shape)
        return (self._view(a) + self._view(b)).transpose(0, 3, 1, 2)

    def _convolve(
        self,
        describe: Callable[..., None],
        geometry: tuple,
        arrays: dict[str, Any],
        result: Any,
        residual: Any | None,
    ) -> Any:
        """Convolves into `result` and adds `residual`, in one graph if cuDNN has an engine for it.

        In fp32 never: engines with an addition are general, many without one are specialised.
        """
        plan = None
        if residual is not None and self.precision != "fp32":
            plan = self._planner.plan(describe, *geometry, True)
        if plan is not None:
            arrays, residual = {**arrays, "residual": residual}, None
        else:
            plan = _engine_for(self._planner.plan(describe, *geometry, False), geometry)
        self._run(plan, arrays)
        return result if residual is None else self.add(result, residual)

    def _run(self, plan: Plan, arrays: dict[str, Any]) -> None:
        stream = self._xp.cuda.get_current_stream()
        if self._stream is None or stream.ptr != self._stream.ptr:
            self._library.set_stream(handle=self._handle, stream=stream.ptr)
            # Kept alive, so that no other stream gets its address while the handle has it.
            self._stream = stream
        if plan.candidates:
            self._choose(plan, arrays)
        # Given back when this returns, before the kernels have run: the pool is ordered by stream.
        workspace = self._xp.cuda.alloc(plan.workspace)
        plan.run(self._handle, workspace.ptr, arrays)

    def _choose(self, plan: Plan, arrays: dict[str, Any]) -> None:
        """Chooses a graph's plan by timing candidates on the first run's arrays, none of which is
        both read and written, except for averages that nobody reads."""
        times: dict[str, float] = {}
        # While a stream captures, nothing runs that could be timed.
        if not self._stream.is_capturing():
            workspace, idle = self._xp.cuda.alloc(plan.workspace), self._xp.zeros(1, FLOAT32)
            run = partial(plan.run, self._handle, workspace.ptr, arrays)
            self._xp.cuda.Device().synchronize()
            times = plan.times(run, self._xp.cuda, partial(self._kernels.occupy, idle))
        self._planner.record(plan, times)

    def _weights(self, W: Any) -> Any:
        """Weights (o, c, kh, kw) with the activations' type and memory."""
        if W.dtype != FLOAT32:
            raise TypeError(f"W: dtype {W.dtype}, expected float32")
        if self._current_step is not None and _address(W) in self._current_step.arranged:
            return self._current_step.arranged[_address(W)]
        return self._nhwc(W)

    def _activation(self, name: str, x: Any, shape: Shape | None = None) -> Any:
        if x.dtype != self._dtype:
            raise TypeError(f"{name}: dtype {x.dtype}, expected {self._dtype}")
        if shape is not None and x.shape != shape:
            raise ValueError(f"{name}: shape {x.shape}, expected {shape}")
        return self._nhwc(x)

    def _vector(self, v: Any) -> Any:
        if v.dtype != FLOAT32:
            raise TypeError(f"batch normalisation: dtype {v.dtype}, expected float32 per channel")
        return _aligned(self._xp.ascontiguousarray(v))

    def _vectors(self, channels: int) -> tuple[Any, Any]:
        """Two new arrays with one number per channel."""
        return self._xp.empty(channels, FLOAT32), self._xp.empty(channels, FLOAT32)

    def _averages(self, channels: int) -> tuple[Any, Any]:
        """Running statistics that cuDNN requires and nobody reads."""
        if channels not in self._unused_averages:
            self._unused_averages[channels] = self._vectors(channels)
            for unused in self._unused_averages[channels]:
                unused[...] = 0
        return self._unused_averages[channels]

    def _empty(self, shape: Shape) -> Any:
        n, c, h, w = shape
        return self._xp.empty((n, h, w, c), self._dtype).transpose(0, 3, 1, 2)

    @staticmethod
    def _view(x: Any) -> Any:
        return x.transpose(0, 2, 3, 1)

    def _nhwc(self, x: Any) -> Any:
        nhwc = self._view(x).astype(self._dtype, order="C", copy=False)
        return _aligned(nhwc).transpose(0, 3, 1, 2)

    def _rows(self, x: Any) -> Any:
        return self._view(x).reshape(-1, x.shape[1]).astype(FLOAT32, copy=False)

    def _from_rows(self, rows: Any, shape: Shape) -> Any:
        n, c, h, w = shape
        return rows.astype(self._dtype).reshape(n, h, w, c).transpose(0, 3, 1, 2)


def _engine_for(plan: Plan | None, geometry: tuple) -> Plan:
    if plan is None:
        raise UserError(
            "cuDNN has no engine for the convolution of {} by {} with stride {} and padding {} "
            "or a gradient of it; expected a shape it supports, or engine 'stock'".format(*geometry)
        )
    return plan


def _aligned(x: Any) -> Any:
    """A contiguous array, or its copy if the address is not aligned."""
    return x if _address(x) % ALIGNMENT == 0 else x.copy()


def _normalise(xp: Any, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any]:
    """Batch normalisation and ReLU of float32 rows x (m, c): y, mean, 1 / sqrt(var + EPS) (c,)."""
    mean = x.mean(axis=0)
    centred = x - mean
    inverse = 1 / xp.sqrt((centred * centred).mean(axis=0) + x.dtype.type(EPS))
    return xp.maximum(centred * (gamma * inverse) + beta, 0), mean, inverse


def _normalise_grad(
    x: Any, y: Any, gy: Any, gamma: Any, mean: Any, inverse: Any
) -> tuple[Any, Any, Any]:
    """Gradients of `_normalise` with respect to x, gamma and beta."""
    gy = gy * (y > 0)
    normalised = (x - mean) * inverse
    gbeta = gy.sum(axis=0)
    ggamma = (gy * normalised).sum(axis=0)
    gx = (gy - gbeta / len(x) - normalised * (ggamma / len(x))) * (gamma * inverse)
    return gx, ggamma, gbeta
