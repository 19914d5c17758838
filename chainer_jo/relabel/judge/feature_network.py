"""Small networks for feature vectors that another model has computed, alone or k side by side.

A network is one function: with layers this small, Chainer's bookkeeping takes longer than their
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import chainer
import chainer.links as L
import numpy as np
from chainer import Variable, initializers

from chainer_jo.engine.backend import DECAY, EPS
from chainer_jo.engine.functions import OnceBackward
from chainer_jo.method.preact_resnet import BatchNormReLU


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
        self, in_size: int, num_classes: int, hidden: int, rng: np.random.RandomState | None = None
    ) -> None:
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(
                in_size, hidden, nobias=True, initialW=initializers.HeNormal(rng=rng)
            )
            self.bn = BatchNormReLU(hidden)
            self.dense = L.Linear(hidden, num_classes, initialW=initializers.LeCunNormal(rng=rng))

    def forward(self, x: Variable) -> Variable:
        """Maps features (n, d) float32 to logits (n, num_classes) float32; of k networks side by
        side, (n, k, d) to (n, k, num_classes). Batch normalisation is that of
        `batch_norm_relu`: with the batch's statistics in training, which updates the running ones
        in place, and with the running ones otherwise."""
        bn, train = self.bn, chainer.config.train
        node = Perceptron(None if train else (bn.avg_mean, bn.avg_var))
        y = node.apply((x, self.hidden.W, bn.gamma, bn.beta, self.dense.W, self.dense.b))[0]
        if train:
            n = len(x)
            bn.avg_mean *= DECAY
            bn.avg_mean += (1 - DECAY) * node.mean
            bn.avg_var *= DECAY
            bn.avg_var += (1 - DECAY) * n / max(n - 1, 1) * node.var
        return y

    @staticmethod
    def stacked(networks: Sequence[FeatureNetwork]) -> FeatureNetwork:
        """Copies k networks of one shape into one, whose arrays have k as their first axis: its
        step takes little longer than a step of one network."""
        together = networks[0].copy(mode="copy")
        for param, *params in zip(together.params(), *(n.params() for n in networks), strict=True):
            param.array = np.stack([param.array for param in params])
        for name in ("avg_mean", "avg_var"):
            setattr(together.bn, name, np.stack([getattr(n.bn, name) for n in networks]))
        return together


class Perceptron(OnceBackward):
    """relu(BN(x W^T)) V^T + b, (n, o), with the batch's statistics, or the given ones as constants;
    of k perceptrons side by side (n, k, o).

    Within it arrays have the n inputs as their last axis, which is fast to sum over, and k as their
    first.
    """

    def __init__(self, statistics: tuple | None) -> None:
        super().__init__()
        self._statistics = statistics

    def forward(self, inputs: tuple) -> tuple:
        x, W, gamma, beta, V, b = inputs
        x = np.moveaxis(x, 0, -1)
        z = W @ x
        if self._statistics is None:
            self.mean = z.mean(axis=-1)
            z -= self.mean[..., None]
            self.var = _sums_of_products(z, z) / np.float32(z.shape[-1])
        else:
            self.mean, self.var = self._statistics
            z -= self.mean[..., None]
        inverse_std = (self.var + np.float32(EPS)) ** np.float32(-0.5)
        z *= inverse_std[..., None]
        h = z * gamma[..., None]
        h += beta[..., None]
        np.maximum(h, 0, out=h)
        self.keep(x, W, z, gamma * inverse_std, h, V)
        y = V @ h
        y += b[..., None]
        return (np.moveaxis(y, -1, 0),)

    def backward(self, indexes: tuple, grad_outputs: tuple) -> tuple:
        x, W, z, factor, h, V = self.take()
        gy = np.moveaxis(grad_outputs[0].array, 0, -1)
        gh = V.mT @ gy
        gh *= h > 0
        gbeta = gh.sum(axis=-1)
        ggamma = _sums_of_products(gh, z)
        if self._statistics is None:
            n = np.float32(x.shape[-1])
            gh -= (gbeta / n)[..., None]
            z *= (ggamma / n)[..., None]
            gh -= z
        gh *= factor[..., None]
        gradients = {
            0: lambda: np.moveaxis(W.mT @ gh, -1, 0),
            1: lambda: gh @ x.mT,
            2: lambda: ggamma,
            3: lambda: gbeta,
            4: lambda: gy @ h.mT,
            5: lambda: gy.sum(axis=-1),
        }
        return tuple(Variable(gradients[i](), requires_grad=False) for i in indexes)


def _sums_of_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...n,...n->...", a, b)
