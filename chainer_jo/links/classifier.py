"""A network and the objective it is trained on, as one link."""

import chainer


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
