"""The loss L = L_c + alpha L_p + beta L_e (eqs. 5 to 7 and 10 to 12), with its gradient in closed
form.

A change changes the paper's method in every run; another loss is an entry of
`objectives.OBJECTIVES`.
"""

import chainer
import numpy as np
from chainer import backend

from chainer_jo.engine.cuda import joint_loss_kernel

#: Smallest normal float32; smaller numbers are zero in CuPy's kernels.
SMALLEST_NORMAL = np.finfo(np.float32).tiny


def log_softmax(xp, logits):
    """log s and s = softmax(z), each (..., c), of logits z (..., c), without overflow.

    >>> log_softmax(np, np.log(np.array([1.0, 3.0])))[1]
    array([0.25, 0.75])
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    s = xp.exp(shifted)
    total = s.sum(axis=-1, keepdims=True)
    s /= total
    shifted -= xp.log(total)
    return shifted, s


class JointLoss(chainer.FunctionNode):
    """L = L_c + alpha L_p + beta L_e (eq. 5) of logits z (n, c), a batch of n images.

    - L_c = mean KL(y || s), s = softmax(z) (eqs. 6 and 7);
    - L_p = KL(p || mean s) (eqs. 10 and 11), infinite if a class has no probability in the batch;
    - L_e = mean entropy of s (eq. 12).

    Parameters
    ----------
    labels : labels y, soft or one-hot, (n, c) float32, constant; None leaves L_c out.
    prior : class prior p, (c,) float32, all positive; used if alpha is not 0.
    alpha, beta : weights of L_p and L_e.

    After the call ``probabilities`` holds s (n, c), and ``terms`` the 0-d arrays ``classification``
    (L_c), ``cross_entropy`` (L_c without the entropy of y), ``prior`` (L_p) and ``entropy`` (L_e).
    An ensemble of k networks has logits and labels (n, k, c) and a prior (k, c); L and its terms
    are then sums over the networks. Differentiable once.
    """

    def __init__(self, labels, prior=None, alpha=0.0, beta=0.0):
        self.labels = labels
        self.prior = prior
        self.alpha = alpha
        self.beta = beta
        self._gradient = None

    def forward_gpu(self, inputs):
        (logits,) = inputs
        arrays = [a for a in (logits, self.labels) if a is not None]
        if any(a.ndim > 2 or a.dtype != np.float32 for a in arrays):
            return self.forward_cpu(inputs)
        xp = backend.get_array_module(logits)
        operands = (None if a is None else xp.ascontiguousarray(a, np.float32)
                    for a in (logits, self.labels, self.prior))  # fmt: skip
        result = joint_loss_kernel.joint_loss(*operands, self.alpha, self.beta)
        self.probabilities = result.probabilities
        self._gradient = result.gradient
        values = dict(zip(joint_loss_kernel.TERMS, result.terms, strict=True))
        present = {
            "cross_entropy": self.labels is not None,
            "classification": self.labels is not None,
            "prior": self.alpha,
            "entropy": self.beta,
        }
        self.terms = {name: values[name] for name, is_present in present.items() if is_present}
        return (values["loss"],)

    def forward_cpu(self, inputs):
        (logits,) = inputs
        xp = backend.get_array_module(logits)
        n = logits.shape[0]
        self.log_s, s = log_softmax(xp, logits)
        self.probabilities = s
        self.terms = {}
        loss = xp.zeros((), logits.dtype)
        if self.labels is not None:
            # Sums over classes are ten times as fast where the logits' memory is class by class.
            y = xp.empty_like(logits)
            y[...] = self.labels
            self.labels = y
            cross_entropy = -(y * self.log_s).sum() / n
            # 0 log 0 = 0: the smallest number changes no other term.
            negative_entropy = (y * xp.log(xp.maximum(y, SMALLEST_NORMAL))).sum() / n
            self.terms["cross_entropy"] = cross_entropy
            self.terms["classification"] = cross_entropy + negative_entropy
            loss += self.terms["classification"]
        if self.alpha:
            self.mean_s = s.mean(axis=0)
            self.terms["prior"] = (self.prior * xp.log(self.prior / self.mean_s)).sum()
            loss += self.alpha * self.terms["prior"]
        if self.beta:
            # s log s is 0 where s underflows to 0, since log s stays finite.
            self.row_entropy = -(s * self.log_s).sum(axis=-1, keepdims=True)
            self.terms["entropy"] = self.row_entropy.sum() / n
            loss += self.beta * self.terms["entropy"]
        return (loss,)

    def backward(self, indexes, grad_outputs):
        if self._gradient is not None:
            return (chainer.as_variable(self._gradient * grad_outputs[0].array),)
        s = self.probabilities
        n = s.shape[0]
        gradient = 0.0
        if self.labels is not None:
            gradient = s * self.labels.sum(axis=-1, keepdims=True) - self.labels
        if self.alpha:
            ratio = self.prior / self.mean_s
            gradient = gradient - self.alpha * s * (ratio - (s * ratio).sum(axis=-1, keepdims=True))
        if self.beta:
            gradient = gradient - self.beta * s * (self.log_s + self.row_entropy)
        return (chainer.as_variable(gradient * (grad_outputs[0].array / n)),)


def joint_loss(logits, labels, prior, alpha: float, beta: float) -> chainer.Variable:
    """L = L_c + alpha L_p + beta L_e (eq. 5), a scalar; see `JointLoss`.

    >>> uniform = np.full((1, 2), 0.5, np.float32)  # labels y, and s of equal logits
    >>> loss = joint_loss(np.zeros((1, 2), np.float32), uniform, uniform[0], alpha=1.2, beta=0.8)
    >>> bool(np.isclose(loss.array, 0.8 * np.log(2)))
    True
    """
    return JointLoss(labels, prior, alpha, beta).apply((logits,))[0]


def classification_loss(logits, labels) -> chainer.Variable:
    """L_c (eqs. 6 and 7): mean KL(y_i || s_i), a scalar, of logits (n, c) and labels (n, c) whose
    rows sum to 1. With one-hot labels L_c is the cross entropy (eq. 2).

    >>> loss = classification_loss(np.zeros((1, 2), np.float32), np.eye(2, dtype=np.float32)[:1])
    >>> bool(np.isclose(loss.array, np.log(2)))
    True
    """
    return JointLoss(labels).apply((logits,))[0]


def prior_loss(logits, prior) -> chainer.Variable:
    """L_p (eqs. 10 and 11): KL(p || mean s), a scalar, of logits (n, c) and the prior p (c,).

    >>> prior_loss(np.zeros((4, 2), np.float32), np.full(2, 0.5, np.float32)).array
    array(0., dtype=float32)
    """
    return JointLoss(None, prior, alpha=1.0).apply((logits,))[0]


def entropy_loss(logits) -> chainer.Variable:
    """L_e (eq. 12): mean entropy of s_i in nats, a scalar, of logits (n, c).

    >>> bool(np.isclose(entropy_loss(np.zeros((4, 10), np.float32)).array, np.log(10)))
    True
    """
    return JointLoss(None, beta=1.0).apply((logits,))[0]
