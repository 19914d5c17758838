"""Forward loss correction (Patrini et al. 2017): one function of the logits, and its objective."""

import chainer
import numpy as np

from chainer_jo.engine.backend import current_backend
from chainer_jo.method.losses import log_softmax
from chainer_jo.method.objectives import OBJECTIVES, Objective, check_transition


class ForwardCorrectionLoss(chainer.FunctionNode):
    """Mean of -log(y^T T^T s) over the batch, s = softmax of the logits (n, c): eq. 1, which prints
    T for T^T.

    Parameters
    ----------
    labels : noisy labels y, (n, c) float32, one-hot or soft, constant.
    transition : T (c, c) float32, T_ij = p(noisy j | true i), constant.

    After the call ``probabilities`` holds s (n, c), the posterior of the true class. With u = T y,
    the probability of the noisy label under each true class, the loss is -log sum_z s_z u_z. It is
    computed from log s and is infinite only if T rules out the label for every true class (u = 0).
    Differentiable once.
    """

    def __init__(self, labels, transition):
        self.labels = labels
        self.transition = transition

    def forward(self, inputs):
        (logits,) = inputs
        xp = chainer.backend.get_array_module(logits)
        log_s, self.probabilities = log_softmax(xp, logits)
        with np.errstate(divide="ignore"):
            # log 0 = -inf: a true class that cannot yield this label has no share in it.
            weighted = log_s + xp.log(_product(self.labels, self.transition.T))
        peak = weighted.max(axis=1, keepdims=True)
        share = xp.exp(weighted - peak)
        likelihood = share.sum(axis=1, keepdims=True)
        self.posterior = share / likelihood
        return (xp.asarray(-(peak + xp.log(likelihood)).mean(), logits.dtype),)

    def backward(self, indexes, grad_outputs):
        # d loss / d logits = p(z | x) - p(z | x, y), the latter being s_z u_z normalised.
        difference = self.probabilities - self.posterior
        return (chainer.as_variable(difference * (grad_outputs[0].array / len(difference))),)


def _product(a, b):
    """Matrix product a b by the backend, since a CUDA graph cannot hold CuPy's own."""
    backend = current_backend()
    return a @ b if backend is None else backend.matmul(a, b)


class ForwardCorrection(Objective):
    """-log(y^T T^T s) (eq. 1) of logits and labels (n, c) float32; see `ForwardCorrectionLoss`.

    ``probabilities`` s (n, c) are posteriors of the true class.

    Parameters
    ----------
    transition : true T (c, c) of the injected noise, T_ij = p(noisy j | true i).

    Raises UserError if a row of T is no probability distribution.
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


OBJECTIVES["forward"] = lambda run, split: ForwardCorrection(split.transition_matrix)
