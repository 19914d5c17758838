"""Label update with the given labels as evidence, and a prior that follows the labels."""

from __future__ import annotations

import numpy as np

from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.relabel.estimate import label_noise

#: Steps of EM in one update; the next update starts from the T of the last one.
EM_STEPS = 5
#: Least prior probability of a class: L_p (eq. 10) compares with it.
LEAST_PRIOR = 1e-3


class PosteriorLabels(SoftLabels):
    """Soft labels y_i = p(true | x_i, given label), with the mean of past epochs' probabilities for
    p(true | x_i) and the noise transition matrix T that is estimated with them.

    Eq. 9 ignores the given label; it is the special case of a T with equal rows. If the rows
    differ, an image keeps its given label where this label is more probable than the prediction.
    Under asymmetric noise, each update corrects a network that has begun to predict given labels.
    Of k networks trained in parallel, with labels (n, k), each has its own T.
    """

    def __init__(self, given: np.ndarray, num_classes: int, average: int | None = 10) -> None:
        super().__init__(given, num_classes, "soft", average=average)
        self.given = np.asarray(given)
        self.transition = np.zeros((*self.given.shape[1:], num_classes, num_classes))

    def update(self) -> None:
        """Moves T towards its estimate, then replaces the labels."""
        mean = self.mean_probabilities()
        labels = np.empty_like(mean)
        for network in np.ndindex(self.given.shape[1:]):  # of a single one, ()
            every = slice(None), *network
            s, given, transition = mean[every], self.given[every], self.transition[network]
            start = transition if transition.any() else None
            transition[...] = label_noise.estimate_transition(s, given, start, EM_STEPS)
            labels[every] = label_noise.posterior(s, given, transition)
        self.soft_labels[...] = labels


def prior_of(labels):
    """Mean (..., c) of labels (n, ..., c), kept positive, as the prior of `JointObjective`."""
    mean = labels.mean(axis=0).clip(LEAST_PRIOR)
    return mean / mean.sum(axis=-1, keepdims=True)
