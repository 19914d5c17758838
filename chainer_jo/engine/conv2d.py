"""Convolution without bias, with an optional residual added in the same pass."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import Variable

from chainer_jo.engine.backend import Backend, current_backend
from chainer_jo.engine.function_nodes import OnceBackward


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


class Conv2D(OnceBackward):
    """`conv2d` by a backend."""

    def __init__(self, backend: Backend, stride: int, pad: int) -> None:
        super().__init__()
        self._backend = backend
        self._stride = stride
        self._pad = pad

    def forward(self, inputs: tuple) -> tuple:
        x, W, *residual = inputs
        self.keep(x, W)
        return (self._backend.conv2d(x, W, self._stride, self._pad, *residual or (None,)),)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> tuple:
        x, W = self.take()
        gy = grad_outputs[0].array
        existing = (None if g is None else g.array for g in grad_inputs)
        return tuple(
            Variable(self._gradient(i, x, W, gy, g), requires_grad=False)
            for i, g in zip(target_input_indexes, existing, strict=True)
        )

    def _gradient(self, index: int, x: Any, W: Any, gy: Any, accumulate: Any | None) -> Any:
        backend, stride, pad = self._backend, self._stride, self._pad
        if index == 0:
            return backend.conv2d_grad_input(gy, W, x.shape, stride, pad, accumulate)
        if index == 1:
            gW = backend.conv2d_grad_weight(x, gy, W.shape, stride, pad)
            return backend.gradient_of(W, gW, accumulate)
        return gy if accumulate is None else backend.add(gy, accumulate)
