"""Updating Y with theta fixed (Section 4.1): hard labels (eq. 8) or soft labels (eq. 9) from the
network's mean probabilities over past epochs (Section 5.2).

A change changes the paper's method in every run; another rule is an entry of `RULES`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from chainer_jo.engine.cuda import kernels
from chainer_jo.errors import Limits, UserError
from chainer_jo.method.registry import Registry


class SoftLabels:
    """Labels Y of n training images, and the probabilities s of past epochs that update them.

    ``soft_labels`` (n, c) float32 are Y, at first the one-hot noisy labels. In an epoch, `write`
    collects s of each batch in ``probabilities`` (n, c); `end_epoch` adds these to the history, and
    `update` replaces Y by a rule applied to the history's mean. An ensemble of k networks has
    arrays (n, k, c).

    Parameters
    ----------
    labels : noisy labels, (n,) or (n, k) int, or soft labels, (n, c) or (n, k, c) float32.
    num_classes : c.
    rule : one of `RULES`; None keeps the labels as they are, without a history.
    top : number of labels that the rule ``"top"`` replaces in one update.
    average : number of past epochs in the mean (10 on CIFAR-10); None for all epochs (Clothing1M).
    xp : NumPy or CuPy, for all arrays.

    Raises UserError for an unknown rule, the rule ``"top"`` without a positive number, or labels
    that are no classes.

    >>> labels = SoftLabels(np.array([0, 1]), num_classes=2, rule="soft")
    >>> labels.write(np.array([0, 1]), np.array([[0.25, 0.75], [0.5, 0.5]]))
    >>> labels.end_epoch()
    >>> labels.update()
    >>> labels.soft_labels
    array([[0.25, 0.75],
           [0.5 , 0.5 ]], dtype=float32)
    """

    def __init__(
        self,
        labels: np.ndarray,
        num_classes: int,
        rule: str | None = None,
        top: int | None = None,
        average: int | None = 10,
        xp=np,
    ) -> None:
        if rule == "top" and not (top and top > 0):
            raise UserError(f"label rule 'top' with {top}: expected a positive number of labels")
        if average is not None:
            Limits(int, 1).check("epochs averaged over", average)
        self.rule = rule
        self._apply = None if rule is None else RULES[rule]
        self.top = top
        self.epochs_seen = 0
        self.xp = xp
        labels = xp.asarray(labels)
        if labels.dtype.kind != "f":
            if labels.size and not 0 <= labels.min() <= labels.max() < num_classes:
                found = f"from {labels.min()} to {labels.max()}"
                raise UserError(f"labels {found}: expected 0 to {num_classes - 1}")
            labels = xp.eye(num_classes, dtype=np.float32)[labels]
        self.soft_labels = labels.astype(np.float32)
        self.probabilities = xp.zeros_like(self.soft_labels)
        self._mean: Any = None
        self._ring: Any = None
        if rule is not None and average is None:
            self._mean = xp.zeros_like(self.soft_labels)
        elif rule is not None:
            self._ring = xp.zeros((average, *self.soft_labels.shape), np.float32)

    def write(self, indices, probabilities) -> None:
        """Stores s (b, c) of a batch, the images ``indices`` (b,)."""
        if self.xp is not np:
            kernels.write_rows(self.probabilities, indices, probabilities)
        else:
            self.probabilities[indices] = probabilities

    def end_epoch(self) -> None:
        """Adds s of the epoch to the history."""
        if self._mean is not None:
            self._mean += (self.probabilities - self._mean) / np.float32(self.epochs_seen + 1)
        elif self._ring is not None:
            self._ring[self.epochs_seen % len(self._ring)] = self.probabilities
        self.epochs_seen += 1

    def mean_probabilities(self):
        """Mean of s (n, c) over the last ``average`` epochs, or over all of them if fewer."""
        if self._mean is not None:
            return self._mean.copy()
        return self._ring[: min(self.epochs_seen, len(self._ring))].mean(axis=0)

    def update(self) -> None:
        """Updates Y in place by the rule. Raises UserError if the rule returns labels, puts another
        array into ``soft_labels``, or writes rows that are no probabilities although the mean's
        rows are."""
        if self._apply is None:
            return
        labels, rule = self.soft_labels, f"label rule {self.rule!r}"
        returned = self._apply(self, self.mean_probabilities())
        if returned is not None or self.soft_labels is not labels:
            expected = "labels.soft_labels[...] = new labels, and nothing returned"
            raise UserError(f"{rule} returned or assigned labels: expected {expected}")
        if not _are_probabilities(labels) and _are_probabilities(self.mean_probabilities()):
            expected = "expected finite rows from 0 on that sum to 1, or less to weigh images"
            raise UserError(f"{rule} wrote rows that are no probabilities: {expected}")

    def serialize(self, serializer) -> None:
        """Saves or loads labels and history, by a Chainer serializer or deserializer. Every array
        has one row per image."""
        self.epochs_seen = serializer("epochs_seen", self.epochs_seen)
        self.soft_labels = serializer("labels", self.soft_labels)
        self.probabilities = serializer("probabilities", self.probabilities)
        if self._mean is not None:
            self._mean = serializer("mean", self._mean)
        if self._ring is not None:
            for i, past in enumerate(self._ring):
                self._ring[i] = serializer(f"ring{i}", past)


def _are_probabilities(rows) -> bool:
    """True if each row (..., c) is finite, not negative and sums to at most 1, up to rounding."""
    return bool((rows.min() >= 0) & (rows.sum(axis=-1).max() < 1.01))


def soft(labels: SoftLabels, mean) -> None:
    """Soft labels: y_i = mean s_i (eq. 9)."""
    labels.soft_labels[...] = mean


def hard(labels: SoftLabels, mean) -> None:
    """Hard labels: y_ij = 1 if j is the arg max of the mean s_i, else 0 (eq. 8)."""
    labels.soft_labels[...] = _one_hot(mean.argmax(axis=-1), labels)


def most_disagreeing(labels: SoftLabels, mean) -> None:
    """Hard labels (eq. 8) for ``top`` images only (Section 5.4): among images whose arg max differs
    from their label, the ones with the smallest mean s at that label."""
    xp = labels.xp
    predicted, current = mean.argmax(axis=1), labels.soft_labels.argmax(axis=1)
    agreement = mean[xp.arange(len(mean)), current]
    agreement[predicted == current] = np.inf
    chosen = xp.argsort(agreement, kind="stable")[: labels.top]
    chosen = chosen[agreement[chosen] < np.inf]
    labels.soft_labels[chosen] = _one_hot(predicted[chosen], labels)


def _one_hot(classes, labels: SoftLabels):
    return labels.xp.eye(labels.soft_labels.shape[-1], dtype=np.float32)[classes]


#: Label rules by name. A rule writes ``labels.soft_labels`` (n, c) in place from the mean of s
#: (n, c), both float32 on one device.
RULES: Registry[Callable[[SoftLabels, np.ndarray], None]] = Registry("label rule")
RULES |= {"soft": soft, "hard": hard, "top": most_disagreeing}
