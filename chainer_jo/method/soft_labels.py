"""The labels that training optimises, the probabilities they are made of, and the rules that make
them (Section 4.1)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from chainer import backend

from chainer_jo.engine.cuda import is_on_gpu, kernels
from chainer_jo.errors import UserError


class LabelStore:
    """Labels Y of n training images and the probabilities s that the network gave them in past
    epochs.

    ``labels`` is (n, c) float32, at first the one-hot noisy labels. During an epoch `write` stores
    each batch's probabilities in ``probabilities`` (n, c); `end_epoch` puts that matrix into the
    history, and `update` replaces the labels by the history's mean, as the rule says. All arrays
    live on the device of ``xp``. Of k networks side by side, all of them have k such rows for each
    image, (n, k, c).

    Parameters
    ----------
    labels : (n,) or (n, k) int, the noisy labels that the images come with, or (n, c) or (n, k, c)
        float32, soft labels.
    num_classes : c.
    rule : None: the labels stay as they are and no history is kept; else one of `RULES`.
    top : number of labels that the rule ``"top"`` replaces in one update.
    average : epochs that the mean is over (the last 10 in the paper); None for all epochs, as a
        running mean.
    xp : NumPy or CuPy.

    Raises
    ------
    UserError
        for an unknown rule, or a rule ``"top"`` without a positive number.
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
        if rule is not None and rule not in RULES:
            raise UserError(f"label rule {rule!r}: expected one of {', '.join(RULES)}")
        if rule == "top" and not (top and top > 0):
            raise UserError(f"label rule 'top' with {top}: expected a positive number of labels")
        if average is not None and average < 1:
            raise UserError(f"labels averaged over {average} epochs: expected at least 1")
        self.rule = rule
        self.top = top
        self.epochs_seen = 0
        labels = xp.asarray(labels)
        if labels.dtype.kind != "f":
            labels = xp.eye(num_classes, dtype=np.float32)[labels]
        self.labels = labels.astype(np.float32)
        self.probabilities = xp.zeros_like(self.labels)
        self._mean: Any = None
        self._ring: Any = None
        if rule is not None and average is None:
            self._mean = xp.zeros_like(self.labels)
        elif rule is not None:
            self._ring = xp.zeros((average, *self.labels.shape), np.float32)

    def write(self, indices, probabilities) -> None:
        """Stores probabilities (b, c) as the latest of the images ``indices`` (b,)."""
        if is_on_gpu(self.probabilities):
            kernels.write_rows(self.probabilities, indices, probabilities)
        else:
            self.probabilities[indices] = probabilities

    def end_epoch(self) -> None:
        """Adds the latest probabilities of all images to the history."""
        if self._mean is not None:
            self._mean += (self.probabilities - self._mean) / np.float32(self.epochs_seen + 1)
        else:
            self._ring[self.epochs_seen % len(self._ring)] = self.probabilities
        self.epochs_seen += 1

    def mean_probabilities(self):
        """Mean (n, c) of the probabilities over the last epochs, or over those there are while
        these are fewer."""
        if self._mean is not None:
            return self._mean.copy()
        return self._ring[: min(self.epochs_seen, len(self._ring))].mean(axis=0)

    def update(self) -> None:
        """Replaces the labels as the rule says. Raises UserError if it returns or assigns others,
        or if they are not finite where the probabilities are."""
        if self.rule is None:
            return
        labels, rule = self.labels, f"label rule {self.rule!r}"
        returned = RULES[self.rule](self, self.mean_probabilities())
        if returned is not None or self.labels is not labels:
            expected = "store.labels[...] = labels, and nothing returned"
            raise UserError(f"{rule} returned or assigned labels: expected {expected}")
        xp = backend.get_array_module(labels)
        if not xp.isfinite(labels).all() and xp.isfinite(self.mean_probabilities()).all():
            raise UserError(f"{rule} wrote NaN or infinity: expected finite labels")

    def serialize(self, serializer) -> None:
        """Saves or loads everything that `update` depends on (a Chainer serializer or
        deserializer). Every array has one row per image."""
        self.epochs_seen = serializer("epochs_seen", self.epochs_seen)
        self.labels = serializer("labels", self.labels)
        self.probabilities = serializer("probabilities", self.probabilities)
        if self._mean is not None:
            self._mean = serializer("mean", self._mean)
        if self._ring is not None:
            for i, past in enumerate(self._ring):
                self._ring[i] = serializer(f"ring{i}", past)


def soft(store: LabelStore, mean) -> None:
    """y = mean s (``eq:soft`` of the paper)."""
    store.labels[...] = mean


def hard(store: LabelStore, mean) -> None:
    """y is the one-hot arg max of the mean s (``eq:label``)."""
    store.labels[...] = _one_hot(mean.argmax(axis=-1), mean)


def most_disagreeing(store: LabelStore, mean) -> None:
    """Hard labels, but only for the ``top`` images that disagree most: among those whose arg max
    differs from their current label, the ones with the smallest mean s at the current label."""
    xp = backend.get_array_module(mean)
    predicted, current = mean.argmax(axis=1), store.labels.argmax(axis=1)
    agreement = mean[xp.arange(len(mean)), current]
    agreement[predicted == current] = np.inf
    chosen = xp.argsort(agreement, kind="stable")[: store.top]
    chosen = chosen[agreement[chosen] < np.inf]
    store.labels[chosen] = _one_hot(predicted[chosen], mean)


def _one_hot(classes, like):
    return backend.get_array_module(like).eye(like.shape[-1], dtype=np.float32)[classes]


#: Label rules by name; the name becomes part of the description of a run. A rule replaces labels
#: (n, c) by the mean (n, c) of past epochs' probabilities, both float32 on one device. It works in
#: place: readers may hold on to the array. Add your own under a new name.
RULES: dict[str, Callable[[LabelStore, np.ndarray], None]] = {
    "soft": soft,
    "hard": hard,
    "top": most_disagreeing,
}
