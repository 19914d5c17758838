"""Feature vectors, scaled, as input of training in the place of images; small networks for them,
alone or k side by side.

One scale for all columns suits embeddings: standardisation would amplify noise, the small columns
of a PCA above all. Standardisation suits tables: the columns have units of their own, and the
largest would hide the others. The given labels decide.

A network is one function: with layers this small, Chainer's bookkeeping takes longer than their
arithmetic.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import chainer
import chainer.links as L
import numpy as np
from chainer import Variable, initializers

from chainer_jo.engine.functions import SingleBackward
from chainer_jo.engine.interface import DECAY, EPS
from chainer_jo.method.images import Images
from chainer_jo.method.iterator import Batch
from chainer_jo.method.preact_resnet import BatchNormReLU

#: Units of a network's hidden layer.
HIDDEN = 32
#: Rows at most on which the two scalings are compared.
MAX_ROWS = 500
#: Rows of features that are copied at a time.
ROWS_AT_A_TIME = 10_000
#: Ridge penalties, as parts of the kernel's trace.
PENALTIES = 0.01, 0.03, 0.1, 0.3


def parts(n: int) -> list[slice]:
    """Slices of n rows, `ROWS_AT_A_TIME` or fewer each."""
    return [slice(i, i + ROWS_AT_A_TIME) for i in range(0, n, ROWS_AT_A_TIME)]


class FeatureInput(Images):
    """Features (n, d) of one set, given out as float32 (b, d), never augmented; ``values`` (n, d)
    are as networks see them.

    Parameters
    ----------
    mean : (d,), of the training features, in whose dtype differences are taken.
    scale : divisor of the differences, () or (d,); see `scaling_of`.
    """

    def __init__(self, features: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> None:
        self.values: np.ndarray = np.empty(features.shape, np.float32)
        for part in parts(len(features)):
            self.values[part] = (features[part].astype(mean.dtype, copy=False) - mean) / scale
        self.rows = np.arange(len(features))

    def inputs(self, rows: np.ndarray) -> FeatureInput:
        """Some rows: int (m,), or (m, k) for k networks side by side, given out as (b, k, d)."""
        some = copy.copy(self)
        some.rows = self.rows[rows]
        return some

    def __len__(self) -> int:
        return len(self.rows)

    def augmented(self, batch: Batch):
        """The features of a training batch."""
        return self.values[self.rows[batch.indices]]

    def plain(self, part: slice):
        """The features of a slice."""
        return self.values[self.rows[part]]


class FeatureSet(FeatureInput):
    """Features float32 or float64 (n, d) with noisy labels int (n,), which decide the scale.
    ``normalisation`` is the mean and scale that `FeatureInput` applies to others."""

    def __init__(self, features: np.ndarray, given: np.ndarray) -> None:
        self.normalisation = scaling_of(features, given)
        super().__init__(features, *self.normalisation)


def scaling_of(features: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and scale of finite features (n, d), of their dtype. The scale is the one by which
    other rows predict the given labels, int (n,), better: the root mean square of all deviations,
    (), or the standard deviation of each column, (d,), infinite for a constant column."""
    mean, own = features.mean(axis=0, dtype=np.float64), np.zeros((1, features.shape[1]))
    for part in parts(len(features)):  # hypot: of any magnitude
        own = np.hypot.reduce(np.vstack([own, features[part] - mean]), axis=0, keepdims=True)
    own = own[0] / np.sqrt(len(features))
    own[np.ptp(features, axis=0) == 0] = 0
    one = np.float64(np.hypot.reduce(own) / np.sqrt(len(own)) or 1.0)
    own[own == 0] = np.inf
    rows = np.random.default_rng(0).permutation(len(features))[:MAX_ROWS]
    x, y = features[rows] - mean, given[rows, None] == np.unique(given[rows])
    scale = min((one, own), key=lambda scale: left_out_error(x / scale, y))
    return mean.astype(features.dtype), scale.astype(features.dtype)


def left_out_error(x: np.ndarray, y: np.ndarray) -> float:
    """Sum of squared leave-one-out errors of kernel ridge regression from x (n, d) to y (n, c),
    with the best of the `PENALTIES`. The kernel is Gaussian, as wide as x is."""
    from scipy.spatial.distance import cdist

    distances = cdist(x, x, "sqeuclidean")
    kernel = np.exp(-distances / (distances.mean() or 1.0))
    kernel -= kernel.mean(axis=0) + kernel.mean(axis=1, keepdims=True) - kernel.mean()
    values, vectors = np.linalg.eigh(kernel)
    values, y, errors = values.clip(0), y - y.mean(axis=0), []
    for penalty in PENALTIES:
        kept = values / (values + penalty * (values.sum() or 1.0))
        residuals = y - vectors @ (kept[:, None] * (vectors.T @ y))
        leverage = vectors**2 @ kept + 1 / len(x)
        errors.append(((residuals / (1 - leverage)[:, None]) ** 2).sum())
    return min(errors)


class FeatureNetwork(chainer.Chain):
    """A layer of ``hidden`` units with batch normalisation and ReLU, and a linear output. Weights
    are He-normal in the hidden layer, and Chainer's default in the output."""

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
        side, (n, k, d) to (n, k, num_classes). Batch normalisation is as in `batch_norm_relu`."""
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
        """Copies k networks of one shape into one, whose arrays have k as their first axis."""
        together = networks[0].copy(mode="copy")
        for param, *params in zip(together.params(), *(n.params() for n in networks), strict=True):
            param.array = np.stack([param.array for param in params])
        for name in ("avg_mean", "avg_var"):
            setattr(together.bn, name, np.stack([getattr(n.bn, name) for n in networks]))
        return together


class Perceptron(SingleBackward):
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
