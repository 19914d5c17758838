"""Which given labels are wrong, and what they should be, from probabilities of a network that was
not trained on them. No true label is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chainer_jo.relabel import label_noise


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """What is thought of n given labels.

    Attributes
    ----------
    probabilities : p(true | x, given), float64 (n, c): new soft labels.
    new : int (n,), the likeliest class of each image.
    wrong : bool (n,), which given labels to call wrong so that F1 is expected to be highest. That
        finds more than ``new != given``: an image whose given label is a little likelier than not
        is worth a look, though not a change.
    confusion : T (c, c), the estimated p(given j | true k), its rows sum to 1.
    exponent : what the network's probabilities were raised to; see `label_noise.calibrate`.
    """

    given: np.ndarray
    probabilities: np.ndarray
    new: np.ndarray
    wrong: np.ndarray
    confusion: np.ndarray
    exponent: float

    @property
    def probability_given(self) -> np.ndarray:
        """The probability (n,) that the given label is right; the surest errors have the least."""
        return self.probabilities[np.arange(len(self.given)), self.given]

    @property
    def changed(self) -> np.ndarray:
        """Whose label is another now, bool (n,)."""
        return self.new != self.given


def find_label_errors(probabilities: np.ndarray, given: np.ndarray) -> LabelErrors:
    """Judges given labels by Bayes' rule under a confusion that is estimated from them.

    Parameters
    ----------
    probabilities : (n, c), of images whose labels the network has not been trained on.
    given : int (n,).
    """
    exponent, confusion = label_noise.calibrate(probabilities, given)
    sharpened = label_noise.sharpen(probabilities, exponent)
    likely = label_noise.posterior(sharpened, given, confusion)
    wrong = 1 - likely[np.arange(len(given)), given]
    return LabelErrors(
        given,
        likely,
        likely.argmax(axis=1),
        wrong >= best_threshold(wrong),
        confusion,
        exponent,
    )


def best_threshold(wrong: np.ndarray) -> float:
    """The least probability of being wrong to be called so, for the highest expected F1.

    If k labels of probabilities w are called wrong, twice their sum over k plus the sum of all is
    about the expected F1: numerator and denominator are replaced by their expectations. 1 if none
    can be wrong.

    Parameters
    ----------
    wrong : probabilities (n,) that labels are wrong.
    """
    ordered = np.sort(wrong)[::-1]
    total = ordered.sum()
    if not total:
        return 1.0
    f1 = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + total)
    return float(ordered[f1.argmax()])
