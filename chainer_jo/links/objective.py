"""The base class of all objectives."""

import chainer
import chainer.functions as F
import numpy as np


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
