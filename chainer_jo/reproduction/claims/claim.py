"""A statement of the paper, the comparisons that its words name, and the word that follows.

Runs of one trial share a seed: validation split, noisy labels, and within a step initial weights
and order of images. Differences are therefore taken trial by trial. The 95 % interval of their mean
(Student's t) decides each comparison by itself: it agrees with the paper if the interval lies on
the claimed side, contradicts it on the other side, and is unclear if the interval includes the
bound, or if as many trials have diverged as have finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from chainer_jo.reproduction.trials import Trials

AGREES, CONTRADICTS, UNCLEAR = "agrees", "contradicts", "unclear"
ONE_TRIAL, NOT_RUN = "one trial", "not run"
CONTRADICTED, MIXED = "contradicted", "mixed"
COMPARISON_WORDS = (AGREES, CONTRADICTS, UNCLEAR, ONE_TRIAL, NOT_RUN)
CLAIM_WORDS = (AGREES, CONTRADICTED, MIXED, UNCLEAR, NOT_RUN)
POINTS = "points"


@dataclass(frozen=True)
class Comparison:
    """Two numbers of which the paper's words say that the first is more than `by` above the second.

    Parameters
    ----------
    compared : both numbers in words: "label accuracy: after > before". Comparisons of the same
        words differ in ``at``.
    at : the setting: "r = 0.1".
    sides : the number that should be larger, and the other.
    by : bound on the difference; negative: less than so much below.
    unit : unit of the difference.
    situation : True for the situation that the claim speaks of.
    """

    compared: str
    at: str
    sides: Sequence[Trials]
    by: float = 0.0
    unit: str = POINTS
    situation: bool = False

    @cached_property
    def difference(self) -> Trials:
        return self.sides[0] - self.sides[1]

    @property
    def word(self) -> str:
        """One of `COMPARISON_WORDS`."""
        finished, diverged = len(self.difference.finished), self.difference.diverged
        if diverged and diverged >= finished:
            return UNCLEAR
        if self.difference.interval is None:
            return ONE_TRIAL if finished else NOT_RUN
        low, high = self.difference.interval
        return AGREES if low > self.by else CONTRADICTS if high < self.by else UNCLEAR


def word_of(words: Iterable[str]) -> str:
    """The word of a claim, one of `CLAIM_WORDS`, by the words of its comparisons: `AGREES` if all
    agree, `CONTRADICTED` if some contradict and none agrees, `MIXED` if some do either, `NOT_RUN`
    if none has a trial, otherwise `UNCLEAR`: also where a comparison is open, or has one trial."""
    found = Counter(words)
    if found[CONTRADICTS]:
        return MIXED if found[AGREES] else CONTRADICTED
    return next((word for word in (NOT_RUN, AGREES) if found[word] == found.total()), UNCLEAR)


class Results(Protocol):
    """Numbers of one preset by the trial's seed, under the names that the paper gives them:
    learning rates, noise rates, hyper parameters, epochs and the k of top-k are the paper's, also
    where a preset scales them. A diverged run has None. An unfinished run is left out, as is a run
    that has no such number."""

    def trials(self, kind: str, **keys) -> Trials:
        """One number per trial, in percent, at the end of a run. ``kind``:

        - "table1" to "table13": a cell by the keys of `paper.tables`; Tables 1 and 2 also have the
          method "noisy_labels" with score "initial", the label accuracy before any method.
        - "figure4" (rule, accuracy): as in the text beside it. rule: "soft", "all", "top50" ...
        - "ablations" (noise, removed, quantity): label accuracy of the first step. removed:
          "nothing", "averaging", "prior", "entropy", "both terms". quantity: "first" (after the
          first update), "last", "except_best_class" (at the end, without the most accurate class),
          "above_0.99" (the share of the labels with a probability over 0.99).
        - "exchanged_classes" (classes, noise_rate): label accuracy of our method in Table 2 on the
          classes "exchanged" (cat and dog) or "other".
        - "label_accuracy" (labels, stage): correct labels of Figures 5 and 6. labels:
          "ground_truth", "symmetric_0.3", "symmetric_0.5", "pseudo"; stage: "initial", "updated".
        """

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        """One number per epoch by trial: test accuracy (percent) of "table1" (method, noise_rate),
        "figure2" (learning_rate) and "figure5" (labels, stage), training loss of "figure3"
        (noise_rate) and "figure6" (labels, stage), label accuracy of "figure4" (rule). ``logged``
        names another entry of the log: "accuracy/noisy" (noisy labels predicted, percent),
        "cross_entropy", or "classification", the KL divergence (eq. 6)."""

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs, and those after which the learning rate is divided: "second_step", "figure3"."""
