"""CNN-CRF (Table 2, row 3; Vahdat 2017) as a Link: regularised EM on clean and noisy labels."""

import chainer
import numpy as np
from chainer import initializers

from chainer_jo.errors import UserError
from chainer_jo.method.crf import CRFLoss, auxiliary_log_posterior, e_step, joint_probabilities
from chainer_jo.method.objectives import Objective, check_transition, is_prior

#: Weight k of the auxiliary distribution p_aux(z | y) in the E-step: first and final value.
K_START, K_END = 40.0, 5.0
#: Fraction of the epochs over which k falls linearly.
ANNEALED = 0.1


class CNNCRF(Objective):
    """One step of regularised EM on p(z, y | x), proportional to exp(a(x)_z + b(x)_y + W_zy).

    Called on logits (n, 2c) float32, the outputs [a, b] of the network's two heads, and noisy
    labels (n, c) float32: the E-step in closed form, then the loss whose descent is the M-step
    (`chainer_jo.method.crf`). ``probabilities`` are the marginals p(z | x) of the batch (n, c).

    W (c, c) is a parameter of this Link, so the optimizer has to be set up on it too. W starts at
    zero: clean and noisy label are independent given the image.

    Parameters
    ----------
    transition : true T (c, c) of the injected noise, T_ij = p(noisy j | true i).
    prior : prior of the clean classes (c,), positive and summing to 1.
    epochs : number of training epochs, at least 1.

    Raises
    ------
    UserError
        if an argument is not as described.
    """

    #: The heads a and b.
    heads = 2
    k: float

    def __init__(self, transition: np.ndarray, prior: np.ndarray, epochs: int) -> None:
        super().__init__()
        transition = check_transition(transition)
        prior = np.asarray(prior, np.float32)
        if prior.shape != transition.shape[:1] or not is_prior(prior):
            raise UserError(
                f"prior {prior.tolist()}: expected {len(transition)} positive "
                "probabilities that sum to 1"
            )
        self.annealing_epochs = ANNEALED * epochs
        self.add_persistent("k", K_START)
        self.add_persistent("log_auxiliary", auxiliary_log_posterior(transition, prior))
        with self.init_scope():
            self.W = chainer.Parameter(initializers.Zero(), transition.shape)

    def start_epoch(self, epoch: int) -> bool:
        """Sets k for an epoch, counted from 0 (k = `K_START`); returns True if k changes."""
        previous = self.k
        progress = min(epoch / self.annealing_epochs, 1.0)
        self.k = K_START + progress * (K_END - K_START)
        return self.k != previous

    def forward(self, logits: chainer.Variable, labels) -> chainer.Variable:
        expected = e_step(logits.array, self.W.array, labels, self.log_auxiliary, self.k)
        function = CRFLoss(expected)
        (loss,) = function.apply((logits, self.W))
        self.probabilities = function.joint.sum(axis=2)
        self.terms = {"loss": loss.array}
        return loss

    def predict(self, logits: chainer.Variable):
        """Marginals p(z | x) (n, c) of logits (n, 2c), as an array; the prediction is arg max."""
        return joint_probabilities(chainer.as_array(logits), self.W.array).sum(axis=2)
