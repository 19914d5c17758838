"""Objectives, losses of logits and labels, as links and by name; a network with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainer
import chainer.functions as F
import numpy as np

from chainer_jo.errors import Limits, UserError
from chainer_jo.method.losses import JointLoss
from chainer_jo.method.noisy_split import NoisySplit
from chainer_jo.method.registry import Registry


def is_prior(p: np.ndarray) -> bool:
    """True if p (c,), or each row of p (k, c), is a distribution without zeros.

    >>> is_prior(np.array([0.5, 0.5])), is_prior(np.array([1.0, 0.0]))
    (True, False)
    """
    return bool(p.ndim and p.size and p.min() > 0 and abs(p.sum(axis=-1) - 1).max() <= 1e-4)


class Objective(chainer.Link):
    """A loss of logits and labels: `JointObjective`, `ForwardCorrection`, `CNNCRF`, or your own.

    After a call ``probabilities`` holds s of the batch (b, c), without a graph, and ``terms`` the
    0-d arrays of the loss and of its terms, by name.
    """

    #: Network outputs per class.
    heads = 1

    def start_epoch(self, epoch: int) -> bool:
        """Adapts the loss to an epoch, counted from 0; returns True if the loss changes. Called
        before each epoch, and again where a run resumes: the state follows from the epoch alone."""
        return False

    def predict(self, logits: chainer.Variable):
        """Class probabilities (b, ..., c) of the network's output, as an array."""
        return F.softmax(logits, axis=logits.ndim - 1).array


class JointObjective(Objective):
    """L_c + alpha L_p + beta L_e (eq. 5) of logits and labels (n, c) float32; see `JointLoss`.

    Cross entropy, up to the constant entropy of the labels, is the case alpha = beta = 0.

    Parameters
    ----------
    prior : class prior p (c,), or (k, c) for an ensemble of k networks, positive and summing to 1;
        uniform on CIFAR-10.
    alpha, beta : weights of L_p and L_e, finite and not negative.

    Raises UserError if the prior is no distribution, or a weight negative or not finite.
    """

    def __init__(self, prior: np.ndarray, alpha: float = 0.0, beta: float = 0.0) -> None:
        super().__init__()
        prior = np.asarray(prior, np.float32)
        if not is_prior(prior):
            raise UserError(
                f"prior {prior.tolist()}: expected positive probabilities that sum to 1"
            )
        Limits(float, 0).check("alpha", alpha)
        Limits(float, 0).check("beta", beta)
        self.alpha = alpha
        self.beta = beta
        self.add_persistent("prior", prior)

    def forward(self, logits: chainer.Variable, labels) -> chainer.Variable:
        function = JointLoss(labels, self.prior, self.alpha, self.beta)
        (loss,) = function.apply((logits,))
        self.probabilities = function.probabilities
        self.terms = {"loss": loss.array, **function.terms}
        return loss


#: Objectives by name: functions of the description of a run, an `Experiment`, and of its split.
#: `forward_correction` and `cnn_crf` add the baselines'.
OBJECTIVES: Registry[Callable[[Any, NoisySplit], Objective]] = Registry("objective")
OBJECTIVES["cross_entropy"] = OBJECTIVES["joint"] = lambda run, split: JointObjective(
    split.prior, run.alpha, run.beta
)


def check_transition(transition: np.ndarray) -> np.ndarray:
    """The noise transition matrix T (c, c), T_ij = p(noisy j | true i), as float32.

    Raises UserError if it is not square, or a row is no probability distribution.
    """
    transition = np.asarray(transition, np.float32)
    if transition.ndim != 2 or transition.shape[0] != transition.shape[1]:
        raise UserError(f"transition matrix of shape {transition.shape}: expected a square matrix")
    for row, values in enumerate(transition):
        if not (values.min() >= 0 and abs(values.sum() - 1) <= 1e-4):
            raise UserError(
                f"transition matrix, row {row} {values.tolist()}: "
                "expected probabilities that sum to 1"
            )
    return transition


class Classifier(chainer.Chain):
    """A network and its loss, optimised together.

    Parameters
    ----------
    predictor : network, from images (b, c, h, w) to logits (b, classes).
    objective : an `Objective`.
    """

    def __init__(self, predictor: chainer.Link, objective: chainer.Link) -> None:
        super().__init__()
        with self.init_scope():
            self.predictor = predictor
            self.objective = objective

    def forward(self, x, labels) -> chainer.Variable:
        """The loss, a scalar, on images (b, c, h, w) and labels (b, classes) float32."""
        return self.objective(self.predictor(x), labels)

    def predict(self, x):
        """Class probabilities (b, classes) in test mode, as an array."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self.objective.predict(self.predictor(x))
