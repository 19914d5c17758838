"""E-step and M-step loss of CNN-CRF (Vahdat 2017), a CRF over the clean and the noisy label.

For c classes, p(z, y | x) is proportional to exp(a(x)_z + b(x)_y + W_zy), z the clean and y the
noisy label. Arrays over pairs are (n, c, c), indexed [image, z, y]; inference is exact.
"""

import chainer
import numpy as np
from chainer import backend


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
