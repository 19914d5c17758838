"""The choice among settings by labels alone, none of which is known to be right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.relabel import label_noise
from chainer_jo.relabel.training import Settings

T = TypeVar("T")
#: Standard errors that a gain has to have.
CERTAIN = 2.0


@dataclass(frozen=True, eq=False)
class Trial(Generic[T]):
    """How well some settings explain labels of images not trained on.

    Attributes
    ----------
    log_likelihood : mean log p(given | x), in nats, under the estimated confusion.
    accuracy : share of images whose given label is the likeliest given label; None if training
        diverged, and there are no more numbers then.
    gain, standard_error : how much more of ``log_likelihood`` than the first trial's, over images;
        of those that did not diverge.
    probabilities : (n, c), what they were computed from.
    """

    settings: T
    probabilities: np.ndarray
    log_likelihood: float = -np.inf
    accuracy: float | None = None
    gain: float = -np.inf
    standard_error: float = 0.0


def compare(
    candidates: Sequence[T], out_of_sample: Callable[[T], np.ndarray], given: np.ndarray
) -> list[Trial[T]]:
    """Tries all settings, the first being the default.

    Parameters
    ----------
    out_of_sample : probabilities (n, c) of images not trained on, with some settings; not all are
        finite where training diverged.
    given : int (n,), their labels.
    """
    trials, first = [], None
    for settings in candidates:
        probabilities = out_of_sample(settings)
        if not np.isfinite(probabilities).all():
            trials.append(Trial(settings, probabilities))
            continue
        exponent, confusion = label_noise.calibrate(probabilities, given)
        sharpened = label_noise.sharpen(probabilities, exponent)
        likelihood = label_noise.log_likelihood(sharpened, given, confusion)
        first = likelihood if first is None else first
        gain = likelihood - first
        trials.append(
            Trial(
                settings,
                probabilities,
                float(likelihood.mean()),
                float(((sharpened @ confusion).argmax(axis=1) == given).mean()),
                float(gain.mean()),
                float(gain.std() / np.sqrt(len(given))),
            )
        )
    return trials


def choose(trials: Sequence[Trial[T]]) -> Trial[T]:
    """The trial of highest likelihood if it beats the first by more than `CERTAIN` standard errors,
    else the first; of those that did not diverge.

    Labels that are wrong in a regular way reward settings that learn them as given, so a small gain
    is no reason to leave the defaults.

    Raises UserError if all diverged.
    """
    finished = [trial for trial in trials if trial.accuracy is not None]
    if not finished:
        raise UserError("training diverged with all settings, expected a smaller --learning-rate")
    best = max(finished, key=lambda trial: trial.log_likelihood)
    return best if best.gain > CERTAIN * best.standard_error else finished[0]


def surely_best(accuracies: Sequence[float | None], number: int) -> int:
    """Which of several settings to take by their accuracies on so many images: the first one, the
    default, unless the best beats it by more than `CERTAIN` standard errors.

    Parameters
    ----------
    accuracies : in [0, 1], None for one that diverged; of one at least there is a number.
    """
    known = {i: accuracy for i, accuracy in enumerate(accuracies) if accuracy is not None}
    best = max(known, key=known.__getitem__)
    if 0 not in known:
        return best
    # With a success and a failure more in each (Agresti and Caffo): few images say little.
    first, other = ((number * known[i] + 1) / (number + 2) for i in (0, best))
    error = np.sqrt((first * (1 - first) + other * (1 - other)) / (number + 2))
    return best if other - first > CERTAIN * error else 0


def candidates(default: Settings) -> list[Settings]:
    """The default and what is tried besides: the paper's alpha and beta under asymmetric noise
    (Section 5.6), and a learning rate as much lower as that of Table 5's low noise rates."""
    return [
        default,
        replace(default, alpha=0.8, beta=0.4),
        replace(default, learning_rate=default.learning_rate / 3),
    ]
