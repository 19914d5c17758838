"""What every objective has in common."""

import chainer
import chainer.functions as F


class Objective(chainer.Link):
    """A loss on logits and labels, called with both; see `JointObjective`, `ForwardCorrection`,
    `CNNCRF`.

    After a call ``probabilities`` holds the batch's class probabilities (b, c), without a graph,
    and ``terms`` the 0-d arrays of the loss and, by name, of its terms.
    """

    #: Outputs of the network per class.
    heads = 1

    #: Whether `start_epoch` changes what a call computes.
    changes_by_epoch = False

    def start_epoch(self, epoch: int) -> None:
        """Called before each epoch, counted from 0, for what changes during training."""

    def predict(self, logits: chainer.Variable):
        """Class probabilities (b, c) of the network's output, as an array."""
        return F.softmax(logits).array
