"""Interface of a backend: array operations for convolution and batch normalisation."""

from __future__ import annotations

import abc
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy

PRECISIONS = ("fp32", "tf32", "mixed")
ENGINES = ("auto", "onednn", "cudnn", "stock")
#: Chainer's defaults for batch normalisation.
DECAY, EPS = 0.9, 2e-5

Shape = tuple[int, ...]


class Unavailable(Exception):
    """A backend cannot work here; the message names what is missing and its package."""


class Backend(abc.ABC):
    """Array operations behind `chainer_jo.engine`; subclass it once per library.

    Arrays are NumPy's or CuPy's. Activations have the logical shape (n, c, h, w) and channels-last
    memory, that is, they are `nhwc.transpose(0, 3, 1, 2)`; other layouts are accepted and copied
    once. Their dtype is the backend's own (float32 for "fp32" and "tf32", a 16-bit type for
    "mixed"). Weights are float32 (o, c, kh, kw), C-contiguous; statistics, gamma, beta and all
    gradients of parameters are float32. Results are new arrays, except that `as_activation`,
    `to_float32` and `gradient_of` may return their argument. Arguments are never written to;
    `accumulate` is an existing gradient to add, of the result's shape and dtype, or None. An
    operation raises TypeError for an unknown dtype.
    """

    name: str
    precision: str
    #: Loss scale: factor of the loss before its backward pass, divided out of every gradient.
    loss_scale: float = 1.0
    #: Recordings of `replayed`, by link; None if the backend does not record.
    recordings: MutableMapping[Any, Any] | None = None

    #: Number of threads of an operation on a CPU; results are reproducible for a fixed number.
    threads: int | None = None

    def recorder(self) -> Any:
        """Another backend of this kind, for one recording; called if there are `recordings`."""
        raise TypeError(f"backend {self.name}: makes no recordings")

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the libraries, by name."""
        return {}

    @abc.abstractmethod
    def as_activation(self, x: Any) -> Any:
        """x (n, c, h, w) of any float dtype, as an activation of this backend."""

    @abc.abstractmethod
    def to_float32(self, x: Any) -> Any:
        """An activation as float32, of the same shape."""

    @abc.abstractmethod
    def conv2d(self, x: Any, W: Any, stride: int, pad: int, residual: Any | None) -> Any:
        """Cross-correlation of x and W, (n, o, h', w'), plus `residual` of that shape if given."""

    @abc.abstractmethod
    def conv2d_grad_input(
        self, gy: Any, W: Any, x_shape: Shape, stride: int, pad: int, accumulate: Any | None
    ) -> Any:
        """Gradient with respect to x, of shape x_shape, plus `accumulate` if given."""

    @abc.abstractmethod
    def conv2d_grad_weight(self, x: Any, gy: Any, W_shape: Shape, stride: int, pad: int) -> Any:
        """Gradient with respect to W, of shape W_shape, to be passed to `gradient_of`."""

    def bind_plan_cache(self, folder: Path) -> None:  # noqa: B027 - most have nothing to choose
        """Begins a run: measured choices, on which rounding depends, are from now on read from and
        kept in a results folder, so that a resumed run rounds alike."""

    @property
    def choices(self) -> str | None:
        """Digest of the choices for this run; None if there is nothing to choose."""
        return None

    def gradient_of(self, W: Any, gradient: Any, accumulate: Any | None) -> Any:
        """Result of `conv2d_grad_weight`, plus `accumulate` if given: float32, C-contiguous."""
        return gradient if accumulate is None else gradient + accumulate

    def step(self, weights: Sequence[tuple[Any, Any]]) -> AbstractContextManager[Mapping[int, Any]]:
        """Wraps one forward and backward pass, so that a backend can batch per-layer work.

        Parameters
        ----------
        weights : float32 weights (o, c, kh, kw), constant inside, each with an array of its shape
            as the placeholder of its gradient.

        Returns
        -------
        A context manager whose mapping holds, afterwards, the gradients that are not in their
        parameters yet, by address of the weights: of any float type and memory layout.
        """
        return nullcontext({})

    @abc.abstractmethod
    def batch_norm_relu_train(self, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any, Any]:
        """max(0, gamma (x - mean) / sqrt(var + EPS) + beta) with the batch's own statistics.

        Returns y, mean (c,), var (c,; biased, or any other form that `move_averages` expects), and
        `saved`, for `batch_norm_relu_grad`.
        """

    @abc.abstractmethod
    def batch_norm_relu_test(self, x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
        """Batch normalisation and ReLU with given statistics."""

    @abc.abstractmethod
    def batch_norm_relu_grad(
        self, x: Any, y: Any, gamma: Any, gy: Any, saved: Any, accumulate: Any | None
    ) -> tuple[Any, Any, Any]:
        """Gradients of `batch_norm_relu_train`: of x (plus `accumulate` if given), gamma, beta."""

    def move_averages(
        self, running_mean: Any, running_var: Any, mean: Any, var: Any, samples: int
    ) -> None:
        """Moves running statistics, in place, towards a batch's statistics; var is biased."""
        running_mean *= DECAY
        running_mean += (1 - DECAY) * mean
        running_var *= DECAY
        running_var += (1 - DECAY) * samples / max(samples - 1, 1) * var

    def spatial_mean(self, x: Any) -> Any:
        """Mean over the pixels of an activation (n, c, h, w): float32 (n, c)."""
        return self.to_float32(x).mean(axis=(2, 3))

    def spatial_mean_grad(self, gy: Any, x_shape: Shape) -> Any:
        """Gradient of `spatial_mean`: an activation of shape x_shape from gy, float32 (n, c)."""
        n, c, h, w = x_shape
        from chainer.backend import get_array_module

        xp = get_array_module(gy)
        per_pixel = (gy / numpy.float32(h * w))[:, None, None, :]
        return self.as_activation(xp.broadcast_to(per_pixel, (n, h, w, c)).transpose(0, 3, 1, 2))

    def matmul(self, a: Any, b: Any) -> Any:
        """Product (m, n) of float32 a (m, k) and b (k, n), any of which may be transposed."""
        return a.dot(b)

    def linear(self, x: Any, W: Any, b: Any) -> Any:
        """x W^T + b for float32 x (n, c), W (o, c), b (o,)."""
        return self.matmul(x, W.T) + b

    def sum_of_rows(self, a: Any) -> Any:
        """Sum (n,) of the rows of float32 a (m, n)."""
        return a.sum(axis=0)

    def add(self, a: Any, b: Any) -> Any:
        """Sum of two activations."""
        return a + b
