"""First and last layers of a network: conversion of images, global average pooling, dense layer."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import Variable

from chainer_jo.engine.backend import current_backend
from chainer_jo.engine.function_nodes import ByBackend


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
