"""CNN-CRF (Table 2, row 3; Vahdat 2017): regularised EM on clean and noisy labels.

A CRF over both labels: for c classes, p(z, y | x) is proportional to exp(a(x)_z + b(x)_y + W_zy),
z the clean and y the noisy label. Arrays over pairs are (n, c, c), indexed [image, z, y]; inference
is exact.
"""

from __future__ import annotations

import chainer
import numpy as np
from chainer import backend, initializers

from chainer_jo.errors import UserError
from chainer_jo.method.objectives import OBJECTIVES, Objective, check_transition, is_prior


def pair_scores(logits, W):
    """a_z + b_y + W_zy, (n, c, c), of the two heads' outputs (n, 2c) = [a, b] and W (c, c)."""
    c = len(W)
    return logits[:, :c, None] + logits[:, None, c:] + W


def normalise(xp, scores, axes):
    """exp(scores) normalised over ``axes``, and the log of the normaliser; scores may be -inf."""
    peak = scores.max(axis=axes, keepdims=True)
    weights = xp.exp(scores - peak)
    total = weights.sum(axis=axes, keepdims=True)
    return weights / total, peak + xp.log(total)


def joint_probabilities(logits, W):
    """p(z, y | x), (n, c, c), of the two heads' outputs (n, 2c) and W (c, c).

    >>> joint_probabilities(np.zeros((1, 4)), np.zeros((2, 2)))
    array([[[0.25, 0.25],
            [0.25, 0.25]]])
    """
    return normalise(backend.get_array_module(logits), pair_scores(logits, W), (1, 2))[0]


def auxiliary_log_posterior(transition: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """log p_aux(z | y), (c, c) float32 indexed [z, y], by Bayes from T (c, c) and z's prior (c,).

    The column of a label y that T never produces is the prior.

    >>> T = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> np.exp(auxiliary_log_posterior(T, np.array([0.5, 0.5]))).round(2)
    array([[1.  , 0.33],
           [0.  , 0.67]], dtype=float32)
    """
    joint = prior[:, None] * transition
    evidence = joint.sum(axis=0)
    posterior = np.where(evidence > 0, joint / np.where(evidence > 0, evidence, 1), prior[:, None])
    with np.errstate(divide="ignore"):
        return np.log(posterior).astype(np.float32)


def e_step(logits, W, labels, log_auxiliary, k: float):
    """Closed-form E-step: q(z, y), (n, c, c), an array without gradient.

    q(z | x, y) is proportional to [p(z | x, y) p_aux(z | y)^k]^(1/(1+k)), the minimiser of
    KL(q || p(z | x, y)) + k KL(q || p_aux(z | y)); q(z, y) = q(z | x, y) labels_y, so that one-hot
    and soft labels are the same case.

    Parameters
    ----------
    logits : (n, 2c), the heads' outputs [a, b].
    W : (c, c).
    labels : (n, c), one-hot noisy labels, or a distribution over them.
    log_auxiliary : log p_aux(z | y), (c, c) indexed [z, y]; may be -inf.
    k : weight of p_aux, positive.
    """
    xp = backend.get_array_module(logits)
    # p(z | x, y) up to a factor that does not depend on z, which normalising removes.
    model = logits[:, : len(W), None] + W
    posterior, _ = normalise(xp, (model + k * log_auxiliary) / (1 + k), 1)
    return posterior * labels[:, None, :]


class CRFLoss(chainer.FunctionNode):
    """Mean of -E_q[log p(z, y | x)], of logits (n, 2c) and W (c, c); its descent is the M-step.

    ``expected`` is q(z, y), (n, c, c), constant. After the call ``joint`` holds p(z, y | x) in the
    same shape. Differentiable once.
    """

    def __init__(self, expected):
        self.expected = expected

    def forward(self, inputs):
        logits, W = inputs
        xp = backend.get_array_module(logits)
        scores = pair_scores(logits, W)
        self.joint, log_normaliser = normalise(xp, scores, (1, 2))
        losses = log_normaliser[:, 0, 0] - (self.expected * scores).sum(axis=(1, 2))
        return (xp.asarray(losses.mean(), logits.dtype),)

    def backward(self, indexes, grad_outputs):
        xp = backend.get_array_module(self.joint)
        gradient = self.joint - self.expected
        gradient *= grad_outputs[0].array / len(gradient)
        heads = xp.concatenate((gradient.sum(axis=2), gradient.sum(axis=1)), axis=1)
        return chainer.as_variable(heads), chainer.as_variable(gradient.sum(axis=0))


#: Weight k of the auxiliary distribution p_aux(z | y) in the E-step: first and final value.
K_START, K_END = 40.0, 5.0
#: Fraction of the epochs over which k falls linearly.
ANNEALED = 0.1


class CNNCRF(Objective):
    """One step of regularised EM on p(z, y | x), proportional to exp(a(x)_z + b(x)_y + W_zy).

    Called on logits (n, 2c) float32, the outputs [a, b] of the network's two heads, and noisy
    labels (n, c) float32: the E-step in closed form, then the loss whose descent is the M-step
    (`CRFLoss`). ``probabilities`` are the marginals p(z | x) of the batch (n, c).

    W (c, c) is a parameter of this Link, so the optimizer has to be set up on it too. W starts at
    zero: clean and noisy label are independent given the image.

    Parameters
    ----------
    transition : true T (c, c) of the injected noise, T_ij = p(noisy j | true i).
    prior : prior of the clean classes (c,), positive and summing to 1.
    epochs : number of training epochs, at least 1.

    Raises UserError if an argument is not as described.
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


OBJECTIVES["cnn_crf"] = lambda run, split: CNNCRF(
    split.transition_matrix, split.prior, run.optimization.epochs
)
