"""The joint objective (eq. 5) as a Link; with alpha = beta = 0 it is the plain classification
loss."""

import chainer
import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.functions.losses import JointLoss
from chainer_jo.links.objective import Objective, is_prior


class JointObjective(Objective):
    """L_c + alpha L_p + beta L_e as in `chainer_jo.functions.losses.JointLoss`.

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
