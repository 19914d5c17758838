"""What networks are trained on: the objectives, and a network with one of them as one link."""

import chainer
import chainer.functions as F
import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.method.forward_correction import ForwardCorrectionLoss
from chainer_jo.method.losses import JointLoss


def is_prior(p: np.ndarray) -> bool:
    """Whether p (c,), or each row of p (k, c), is a distribution that gives every class a share."""
    return bool(p.ndim and p.size and p.min() > 0 and abs(p.sum(axis=-1) - 1).max() <= 1e-4)


class Objective(chainer.Link):
    """A loss on logits and labels, called with both; see `JointObjective`, `ForwardCorrection`,
    `CNNCRF`.

    After a call ``probabilities`` holds the batch's class probabilities (b, c), without a graph,
    and ``terms`` the 0-d arrays of the loss and, by name, of its terms.
    """

    #: Outputs of the network per class.
    heads = 1

    def start_epoch(self, epoch: int) -> bool:
        """Called before each epoch, counted from 0, for what changes during training.

        Returns whether a call computes something else from now on.
        """
        return False

    def predict(self, logits: chainer.Variable):
        """Class probabilities (b, ..., c) of the network's output, as an array."""
        return F.softmax(logits, axis=logits.ndim - 1).array


class JointObjective(Objective):
    """L_c + alpha L_p + beta L_e as in `chainer_jo.method.losses.JointLoss`.

    Called on logits (n, c) float32 and labels (n, c) float32, soft or one-hot. After a call
    ``probabilities`` holds the batch's s (n, c), without a graph, and ``terms`` the 0-d arrays of
    the loss and of each of its terms. Of k networks side by side, all these are as `JointLoss` has
    them, and the prior is (k, c).

    Parameters
    ----------
    prior : class prior p (c,), positive and summing to 1; the uniform distribution on CIFAR-10.
    alpha, beta : weights of the two regularisation terms, finite and not negative.

    Raises
    ------
    UserError
        if the prior is no distribution, or a weight negative or not finite.
    """

    def __init__(self, prior: np.ndarray, alpha: float = 0.0, beta: float = 0.0) -> None:
        super().__init__()
        prior = np.asarray(prior, np.float32)
        if not is_prior(prior):
            raise UserError(
                f"prior {prior.tolist()}: expected positive probabilities that sum to 1"
            )
        if not (0 <= alpha < np.inf and 0 <= beta < np.inf):
            raise UserError(
                f"alpha {alpha:g}, beta {beta:g}: expected finite weights that are not negative"
            )
        self.alpha = alpha
        self.beta = beta
        self.add_persistent("prior", prior)

    def forward(self, logits: chainer.Variable, labels) -> chainer.Variable:
        function = JointLoss(labels, self.prior, self.alpha, self.beta)
        (loss,) = function.apply((logits,))
        self.probabilities = function.probabilities
        self.terms = {"loss": loss.array, **function.terms}
        return loss


def check_transition(transition: np.ndarray) -> np.ndarray:
    """The transition matrix T (c, c), T_ij = p(noisy j | true i), as float32.

    Raises
    ------
    UserError
        if it is not square, or a row is no probability distribution.
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


class ForwardCorrection(Objective):
    """-log(y^T T^T s) as in `chainer_jo.method.forward_correction.ForwardCorrectionLoss`.

    Called on logits (n, c) float32 and labels (n, c) float32, one-hot or soft. After a call
    ``probabilities`` holds the batch's s (n, c), the posterior of the true class, without a graph,
    and ``terms`` the 0-d array of the loss.

    Parameters
    ----------
    transition : T (c, c), T_ij = p(noisy j | true i): the true one, of the injected noise.

    Raises
    ------
    UserError
        if a row of T is no probability distribution.
    """

    def __init__(self, transition: np.ndarray) -> None:
        super().__init__()
        self.add_persistent("transition", check_transition(transition))

    def forward(self, logits: chainer.Variable, labels) -> chainer.Variable:
        function = ForwardCorrectionLoss(labels, self.transition)
        (loss,) = function.apply((logits,))
        self.probabilities = function.probabilities
        self.terms = {"loss": loss.array}
        return loss


class Classifier(chainer.Chain):
    """The target of the optimizer.

    Parameters
    ----------
    predictor : maps images (b, c, h, w) to logits (b, classes).
    objective : a link called on logits and labels, with ``probabilities`` and ``terms`` after the
        call, and ``predict``; see `JointObjective`.
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
