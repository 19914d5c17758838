"""A small network for feature vectors that another model has computed."""

from __future__ import annotations

from collections.abc import Sequence

import chainer
import chainer.links as L
import numpy as np
from chainer import initializers

from chainer_jo.links.preact_resnet import BatchNormReLU
from chainer_jo.relabel.perceptron import perceptron


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
        hidden: int = 64,
        rng: np.random.RandomState | None = None,
    ) -> None:
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(
                in_size, hidden, nobias=True, initialW=initializers.HeNormal(rng=rng)
            )
            self.bn = BatchNormReLU(hidden)
            self.dense = L.Linear(hidden, num_classes, initialW=initializers.LeCunNormal(rng=rng))

    def forward(self, x: chainer.Variable) -> chainer.Variable:
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
