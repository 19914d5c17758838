"""A perceptron with one hidden layer as one function: where layers are as small as of feature
vectors, Chainer's bookkeeping between them takes longer than their arithmetic."""

from __future__ import annotations

from typing import Any

import chainer
import numpy as np
from chainer import FunctionNode, Variable, backend


def perceptron(
    x: Any,
    W: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    V: Any,
    b: Any,
    decay: float = 0.9,
    eps: float = 2e-5,
) -> Variable:
    """relu(BN(x W^T)) V^T + b, (n, o).

    Batch normalisation is that of `batch_norm_relu`: by the batch in training, where the running
    statistics are updated in place, and by these otherwise.

    Parameters
    ----------
    x : float32 (n, d).
    W, V, b : float32 (h, d), (o, h), (o,).
    gamma, beta : float32 (h,).
    running_mean, running_var : float32 arrays (h,).
    """
    statistics = None if chainer.config.train else (running_mean, running_var)
    node = Perceptron(eps, statistics)
    y = node.apply((x, W, gamma, beta, V, b))[0]
    if chainer.config.train:
        n = len(x)
        running_mean *= decay
        running_mean += (1 - decay) * node.mean
        running_var *= decay
        running_var += (1 - decay) * n / max(n - 1, 1) * node.var
    return y


class Perceptron(FunctionNode):
    """`perceptron`, with the batch's statistics, or the given ones as constants.

    Backward runs once: it lets go of what forward kept, so that the memory is reused at once.
    """

    def __init__(self, eps: float, statistics: tuple | None) -> None:
        super().__init__()
        self._eps = np.float32(eps)
        self._statistics = statistics

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        x, W, gamma, beta, V, b = inputs
        z = x.dot(W.T)
        if self._statistics is None:
            self.mean = z.mean(axis=0)
            z -= self.mean
            self.var = backend.get_array_module(z).square(z).mean(axis=0)
        else:
            self.mean, self.var = self._statistics
            z -= self.mean
        inverse_std = (self.var + self._eps) ** np.float32(-0.5)
        z *= inverse_std
        h = z * gamma
        h += beta
        h *= h > 0
        if chainer.config.enable_backprop:
            self._kept = x, W, z, inverse_std, gamma, h, V
        y = h.dot(V.T)
        y += b
        return (y,)

    def backward(self, indexes: tuple, grad_outputs: tuple) -> tuple:
        (x, W, z, inverse_std, gamma, h, V), self._kept = self._kept, None
        gy = grad_outputs[0].array
        gh = gy.dot(V)
        gh *= h > 0
        gbeta = gh.sum(axis=0)
        ggamma = (gh * z).sum(axis=0)
        if self._statistics is None:
            n = np.float32(len(x))
            gh -= gbeta / n
            z *= ggamma / n
            gh -= z
        gh *= gamma * inverse_std
        gradients = {
            0: lambda: gh.dot(W),
            1: lambda: gh.T.dot(x),
            2: lambda: ggamma,
            3: lambda: gbeta,
            4: lambda: gy.T.dot(h),
            5: lambda: gy.sum(axis=0),
        }
        return tuple(Variable(gradients[i](), requires_grad=False) for i in indexes)
