"""Batch normalisation and ReLU in array operations, for shapes without an engine in a library.

Activations are rows, float32 (m, c): one row per pixel, one column per channel.
"""

from __future__ import annotations

from typing import Any

from chainer_jo.engine.interface import EPS


def forward(xp: Any, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any]:
    """max(0, gamma (x - mean) / sqrt(var + EPS) + beta) with the rows' own statistics.

    Returns y (m, c), mean (c,) and the inverse standard deviation 1 / sqrt(var + EPS) (c,).
    """
    mean = x.mean(axis=0)
    centred = x - mean
    inverse = 1 / xp.sqrt((centred * centred).mean(axis=0) + x.dtype.type(EPS))
    return xp.maximum(centred * (gamma * inverse) + beta, 0), mean, inverse


def backward(x: Any, y: Any, gy: Any, gamma: Any, mean: Any, inverse: Any) -> tuple[Any, Any, Any]:
    """Gradients with respect to x (m, c), gamma and beta (c,)."""
    gy = gy * (y > 0)
    normalised = (x - mean) * inverse
    gbeta = gy.sum(axis=0)
    ggamma = (gy * normalised).sum(axis=0)
    gx = (gy - gbeta / len(x) - normalised * (ggamma / len(x))) * (gamma * inverse)
    return gx, ggamma, gbeta
