"""Forward correction (Table 2, row 2; Patrini et al. 2017) as a Link."""

import chainer
import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.functions.forward_correction import ForwardCorrectionLoss
from chainer_jo.links.objective import Objective


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
    """-log(y^T T^T s) as in `chainer_jo.functions.forward_correction.ForwardCorrectionLoss`.

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
