"""A small network for feature vectors that another model has computed, or several side by side.

It is one function: where layers are as small, Chainer's bookkeeping takes longer than their
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import chainer
import chainer.links as L
import numpy as np
from chainer import Variable, backend, initializers

from chainer_jo.functions.batch_norm_relu import DECAY, EPS
from chainer_jo.functions.function_nodes import OnceBackward
from chainer_jo.links.preact_resnet import BatchNormReLU


class FeatureNetwork(chainer.Chain):
    """A hidden layer with batch normalisation and ReLU, and a linear output.

    Parameters
    ----------
    in_size : d, length of a feature vector.
    num_classes : size of the output, c.
    hidden : units of the hidden layer.
    rng : source of the weights (He-normal for the hidden layer, as for convolutions; Chainer's
        default for the output).
    """

    def __init__(
        self,
        in_size: int,
        num_classes: int,
        hidden: int,
        rng: np.random.RandomState | None = None,
    ) -> None:
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(
                in_size, hidden, nobias=True, initialW=initializers.HeNormal(rng=rng)
            )
            self.bn = BatchNormReLU(hidden)
            self.dense = L.Linear(hidden, num_classes, initialW=initializers.LeCunNormal(rng=rng))

    def forward(self, x: Variable) -> Variable:
        """Maps features (n, d) float32 to logits (n, num_classes) float32; of k networks `beside`
        each other, (n, k, d) to (n, k, num_classes)."""
        bn, dense = self.bn, self.dense
        return perceptron(
            x, self.hidden.W, bn.gamma, bn.beta, bn.avg_mean, bn.avg_var, dense.W, dense.b
        )

    @staticmethod
    def beside(networks: Sequence[FeatureNetwork]) -> FeatureNetwork:
        """Copies of k networks of one shape as one, whose arrays have k as their first axis: a step
        of all takes little longer than one of them."""
        together = networks[0].copy(mode="copy")
        for param, *params in zip(together.params(), *(n.params() for n in networks), strict=True):
            param.array = np.stack([param.array for param in params])
        for name in ("avg_mean", "avg_var"):
            setattr(together.bn, name, np.stack([getattr(n.bn, name) for n in networks]))
        return together


def perceptron(
    x: Any,
    W: Any,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    V: Any,
    b: Any,
) -> Variable:
    """relu(BN(x W^T)) V^T + b, (n, o).

    Of k perceptrons side by side, x is (n, k, d) and the result (n, k, o); parameters and
    statistics have k as an axis before the others.

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
    node = Perceptron(statistics)
    y = node.apply((x, W, gamma, beta, V, b))[0]
    if chainer.config.train:
        n = len(x)
        running_mean *= DECAY
        running_mean += (1 - DECAY) * node.mean
        running_var *= DECAY
        running_var += (1 - DECAY) * n / max(n - 1, 1) * node.var
    return y


class Perceptron(OnceBackward):
    """`perceptron`, with the batch's statistics, or the given ones as constants.

    Arrays have the n inputs as their last axis, which is fast to sum over, and k as their first.
    """

    def __init__(self, statistics: tuple | None) -> None:
        super().__init__()
        self._statistics = statistics

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        x, W, gamma, beta, V, b = inputs
        xp = backend.get_array_module(x)
        x = xp.moveaxis(x, 0, -1)
        z = W @ x
        if self._statistics is None:
            self.mean = z.mean(axis=-1)
            z -= self.mean[..., None]
            self.var = _sums_of_products(xp, z, z) / np.float32(z.shape[-1])
        else:
            self.mean, self.var = self._statistics
            z -= self.mean[..., None]
        inverse_std = (self.var + np.float32(EPS)) ** np.float32(-0.5)
        z *= inverse_std[..., None]
        h = z * gamma[..., None]
        h += beta[..., None]
        xp.maximum(h, 0, out=h)
        self.keep(x, W, z, gamma * inverse_std, h, V)
        y = V @ h
        y += b[..., None]
        return (xp.moveaxis(y, -1, 0),)

    def backward(self, indexes: tuple, grad_outputs: tuple) -> tuple:
        x, W, z, factor, h, V = self.take()
        xp = backend.get_array_module(x)
        gy = xp.moveaxis(grad_outputs[0].array, 0, -1)
        gh = _transposed(V) @ gy
        gh *= h > 0
        gbeta = gh.sum(axis=-1)
        ggamma = _sums_of_products(xp, gh, z)
        if self._statistics is None:
            n = np.float32(x.shape[-1])
            gh -= (gbeta / n)[..., None]
            z *= (ggamma / n)[..., None]
            gh -= z
        gh *= factor[..., None]
        gradients = {
            0: lambda: xp.moveaxis(_transposed(W) @ gh, -1, 0),
            1: lambda: gh @ _transposed(x),
            2: lambda: ggamma,
            3: lambda: gbeta,
            4: lambda: gy @ _transposed(h),
            5: lambda: gy.sum(axis=-1),
        }
        return tuple(Variable(gradients[i](), requires_grad=False) for i in indexes)


def _sums_of_products(xp: Any, a: Any, b: Any) -> Any:
    return xp.einsum("...n,...n->...", a, b)


def _transposed(matrices: Any) -> Any:
    return matrices.swapaxes(-1, -2)
