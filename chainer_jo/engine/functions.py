"""Chainer functions that the current backend computes: convolution, batch normalisation with ReLU,
and the first and last layers of a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import chainer
from chainer import FunctionNode, Variable
from chainer import functions as F

from chainer_jo.engine.backend import current_backend
from chainer_jo.engine.interface import DECAY, EPS, Backend


class SingleBackward(FunctionNode):
    """Frees its saved tensors in backward; no double backprop.

    Gradients are arrays without a graph. A second backward pass raises RuntimeError, and so does
    one with double backprop, whose second derivative would silently be 0.
    """

    _saved: tuple | None = None

    def keep(self, *values: Any) -> None:
        """Saves values in forward for `take`, if there is to be a backward pass."""
        if chainer.config.enable_backprop:
            self._saved = values

    def take(self) -> tuple:
        """Returns and frees the saved values, in backward."""
        if chainer.config.enable_backprop:
            raise RuntimeError(
                f"{self.label}: its gradient has no derivative, expected backward without "
                "enable_double_backprop"
            )
        if self._saved is None:
            raise RuntimeError(
                f"{self.label}: backward has run already, expected once for each forward pass"
            )
        saved, self._saved = self._saved, None
        return saved


class ByBackend(FunctionNode):
    """A backend's function whose gradients do not depend on its inputs.

    Parameters
    ----------
    function : from the input arrays to the result.
    gradients : per input, a callable from the result's gradient to the input's gradient.
    """

    def __init__(
        self, function: Callable[..., Any], gradients: Sequence[Callable[[Any], Any]]
    ) -> None:
        super().__init__()
        self._function = function
        self._gradients = gradients

    def forward(self, inputs: tuple) -> tuple:
        return (self._function(*inputs),)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        gy = grad_outputs[0].array
        gradients = (self._gradients[i](gy) for i in target_input_indexes)
        return tuple(Variable(gradient, requires_grad=False) for gradient in gradients)


def conv2d(x: Any, W: Any, stride: int, pad: int, residual: Any | None = None) -> Variable:
    """Two-dimensional cross-correlation, y = x * W [+ residual].

    Parameters
    ----------
    x : activation (n, c, h, w).
    W : float32 (o, c, kh, kw).
    stride, pad : pixels, the same in both directions.
    residual : activation of y's shape, (n, o, h', w') with h' = (h + 2 pad - kh) // stride + 1, and
        w' alike; or None.
    """
    backend = current_backend()
    if backend is None:
        y = chainer.functions.convolution_2d(x, W, stride=stride, pad=pad)
        return y if residual is None else y + residual
    node = Conv2D(backend, stride, pad)
    return node.apply((x, W) if residual is None else (x, W, residual))[0]


class _Layer(SingleBackward, ABC):
    """A layer by a backend, which adds to the gradients that are there already."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._backend = backend

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> tuple:
        inputs = zip(target_input_indexes, grad_inputs, strict=True)
        existing = {i: g.array for i, g in inputs if g is not None}
        gradients = self._gradients(target_input_indexes, grad_outputs[0].array, existing)
        return tuple(Variable(gradient, requires_grad=False) for gradient in gradients)

    @abstractmethod
    def _gradients(self, wanted: tuple[int, ...], gy: Any, existing: dict[int, Any]) -> list:
        """Gradients of the wanted inputs, plus the existing ones."""


class Conv2D(_Layer):
    """`conv2d` by a backend."""

    def __init__(self, backend: Backend, stride: int, pad: int) -> None:
        super().__init__(backend)
        self._stride = stride
        self._pad = pad

    def forward(self, inputs: tuple) -> tuple:
        x, W, *residual = inputs
        self.keep(x, W)
        return (self._backend.conv2d(x, W, self._stride, self._pad, *residual or (None,)),)

    def _gradients(self, wanted, gy, existing):
        x, W = self.take()
        return [self._gradient(i, x, W, gy, existing.get(i)) for i in wanted]

    def _gradient(self, index: int, x: Any, W: Any, gy: Any, accumulate: Any | None) -> Any:
        backend, stride, pad = self._backend, self._stride, self._pad
        if index == 0:
            return backend.conv2d_grad_input(gy, W, x.shape, stride, pad, accumulate)
        if index == 1:
            gW = backend.conv2d_grad_weight(x, gy, W.shape, stride, pad)
            return backend.gradient_of(W, gW, accumulate)
        return gy if accumulate is None else backend.add(gy, accumulate)


def batch_norm_relu(x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Variable:
    """relu(gamma (x - mean) / sqrt(var + EPS) + beta), per channel.

    In training (`chainer.config.train`) mean and var are the batch's, and the running statistics
    are updated in place as by `chainer.functions.batch_normalization`:
    running <- DECAY running + (1 - DECAY) batch, with the unbiased variance. In test mode the
    running statistics are used.

    Parameters
    ----------
    x : activation (n, c, h, w).
    gamma, beta : float32 (c,).
    running_mean, running_var : float32 arrays (c,).
    """
    backend = current_backend()
    if backend is None:
        return F.relu(_stock(x, gamma, beta, running_mean, running_var))
    if not chainer.config.train:
        return ByBackend(
            partial(backend.batch_norm_relu_test, mean=running_mean, var=running_var),
            [_no_gradient] * 3,
        ).apply((x, gamma, beta))[0]
    node = BatchNormReLU(backend)
    y = node.apply((x, gamma, beta))[0]
    samples = x.size // x.shape[1]
    backend.move_averages(running_mean, running_var, node.mean, node.var, samples)
    return y


class BatchNormReLU(_Layer):
    """`batch_norm_relu` in training mode by a backend."""

    def forward(self, inputs: tuple) -> tuple:
        x, gamma, beta = inputs
        y, self.mean, self.var, saved = self._backend.batch_norm_relu_train(x, gamma, beta)
        self.keep(x, y, gamma, saved)
        return (y,)

    def _gradients(self, wanted, gy, existing):
        x, y, gamma, saved = self.take()
        of_x = existing.pop(0, None)
        gradients = self._backend.batch_norm_relu_grad(x, y, gamma, gy, saved, of_x)
        return [gradients[i] + existing[i] if i in existing else gradients[i] for i in wanted]


def _no_gradient(gy: Any) -> NoReturn:
    """Raises RuntimeError: no training step needs this gradient."""
    raise RuntimeError(
        "batch_norm_relu: no gradient in test mode, expected chainer.config.train, or the stock "
        "backend"
    )


def _stock(x, gamma, beta, running_mean, running_var) -> Variable:
    if not chainer.config.train:
        return F.fixed_batch_normalization(x, gamma, beta, running_mean, running_var, eps=EPS)
    return F.batch_normalization(
        x, gamma, beta, eps=EPS, running_mean=running_mean, running_var=running_var, decay=DECAY
    )


def as_activation(x: Any) -> Variable:
    """x (n, c, h, w) float32 in the backend's dtype and memory layout."""
    backend = current_backend()
    if backend is None:
        return chainer.as_variable(x)
    return ByBackend(backend.as_activation, [backend.to_float32]).apply((x,))[0]


def spatial_mean(x: Any) -> Variable:
    """Global average pooling of an activation (n, c, h, w): float32 (n, c)."""
    backend = current_backend()
    if backend is None:
        return chainer.functions.mean(x, axis=(2, 3))
    shape = x.shape
    gradients = [lambda gy: backend.spatial_mean_grad(gy, shape)]
    return ByBackend(backend.spatial_mean, gradients).apply((x,))[0]


def linear(x: Any, W: Any, b: Any) -> Variable:
    """x W^T + b for x (n, c), W (o, c), b (o,), float32 in every precision."""
    backend = current_backend()
    if backend is None:
        return chainer.functions.linear(x, W, b)
    rows, weights = (chainer.as_array(v) for v in (x, W))
    gradients = [
        lambda gy: backend.matmul(gy, weights),
        lambda gy: backend.matmul(gy.T, rows),
        backend.sum_of_rows,
    ]
    return ByBackend(backend.linear, gradients).apply((x, W, b))[0]
