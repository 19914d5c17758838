"""A statement of the paper, the comparisons that its words name, and the word that follows.

Runs of one trial share a seed: the validation split, the noisy labels of each kind, and within a
step initial weights and order of images. Differences are therefore taken trial by trial. The 95 %
interval of their mean (Student's t) decides a comparison, each for itself:

- `AGREES`: the interval lies on the side that the paper claims.
- `CONTRADICTS`: the interval lies on the other side.
- `UNCLEAR`: the interval includes the bound, or as many trials have diverged as have finished.
- `ONE_TRIAL`, `NOT_RUN`: fewer than two trials; there is no interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from chainer_jo.reproduction.trials import Trials

AGREES, CONTRADICTS, UNCLEAR = "agrees", "contradicts", "unclear"
ONE_TRIAL, NOT_RUN = "one trial", "not run"
CONTRADICTED, MIXED = "contradicted", "mixed"
COMPARISON_WORDS = (AGREES, CONTRADICTS, UNCLEAR, ONE_TRIAL, NOT_RUN)
CLAIM_WORDS = (AGREES, CONTRADICTED, MIXED, UNCLEAR, NOT_RUN)

PERCENT, POINTS = "%", "points"


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
    unit : unit of both numbers; differences of percentages are in points.
    situation : True for the situation that the claim speaks of.
    """

    compared: str
    at: str
    sides: Sequence[Trials]
    by: float = 0.0
    unit: str = PERCENT
    situation: bool = False

    @cached_property
    def difference(self) -> Trials:
        first, second = self.sides
        return first - second

    @property
    def word(self) -> str:
        """One of `COMPARISON_WORDS`."""
        difference = self.difference
        finished = len(difference.finished)
        if difference.diverged and difference.diverged >= finished:
            return UNCLEAR
        if difference.interval is None:
            return ONE_TRIAL if finished else NOT_RUN
        low, high = difference.interval
        return AGREES if low > self.by else CONTRADICTS if high < self.by else UNCLEAR


def word_of(words: Iterable[str]) -> str:
    """The word of a claim, one of `CLAIM_WORDS`, by the words of its comparisons: `AGREES` if all
    agree, `CONTRADICTED` if some contradict and none agrees, `MIXED` if some do either, `NOT_RUN`
    if none has a trial, otherwise `UNCLEAR`: also where a comparison is open, or has one trial."""
    found = Counter(words)
    if found[CONTRADICTS]:
        return MIXED if found[AGREES] else CONTRADICTED
    return next((word for word in (AGREES, NOT_RUN) if found[word] == found.total()), UNCLEAR)


class Results(Protocol):
    """Numbers of one preset, under the names that the paper gives them.

    Learning rates, noise rates, hyper parameters, epochs and the k of top-k are the paper's, also
    where a preset scales them. Numbers and curves come by the trial's seed. A diverged run has
    None; an unfinished one is left out, as is a run that has no such number.
    """

    def trials(self, kind: str, **keys) -> Trials:
        """One number per trial, in percent, at the end of a run.

        ==================  ===================================  =================================
        kind                keys                                 number
        ==================  ===================================  =================================
        table1, table2      method, score, accuracy, noise_rate  as in the table
        table3              method, score, accuracy              test accuracy, on Clothing1M only
        table6 ... table11  parameter, value                     validation accuracy
        table12, table13    quantity, range                      label accuracy: "accuracy"
        ablations           noise, removed, quantity             label accuracy, first step
        figure4             rule, accuracy                       as in the text beside it
        exchanged_classes   classes, noise_rate                  label accuracy by true class
        label_accuracy      labels, stage                        labels whose arg max is right
        ==================  ===================================  =================================

        Tables 1 and 2 also have the method "noisy_labels" with score "initial": the label
        accuracy of the labels before any method. exchanged_classes is our method of Table 2,
        classes "exchanged" (cat and dog) or "other". Of ablations, removed is "nothing",
        "averaging", "prior", "entropy" or "both terms", quantity "first" (after the first update),
        "last", "except_best_class" (at the end, of all classes except the most accurate one) or
        "above_0.99" (the share of the labels with a probability over 0.99).
        label_accuracy is of the labels in Figures 5 and 6. rule: "soft", "all", "top50", "top500",
        "top5000". labels: "ground_truth", "symmetric_0.3", "symmetric_0.5", "pseudo". stage:
        "initial" or, after the first step, "updated". Other names and values are those of the
        tables in `paper`. A range without any label has no label accuracy.
        """

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        """One number per epoch by trial, accuracies in percent. ``logged`` names another entry of
        the log: "accuracy/noisy" (noisy labels predicted), or for the training loss
        "cross_entropy" or "classification", which is the KL divergence (eq. 6).

        ==============  ==================  =============================
        kind            keys                number
        ==============  ==================  =============================
        table1          method, noise_rate  test accuracy, second step
        figure2         learning_rate       test accuracy
        figure3         noise_rate          training loss (cross entropy)
        figure4         rule                label accuracy, first step
        figure5         labels, stage       test accuracy, second step
        figure6         labels, stage       training loss, second step
        ==============  ==================  =============================
        """

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs, and those after which the learning rate is divided: "second_step", "figure3"."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its place there, and the comparisons that its words name.

    ``statement`` paraphrases the paper at ``place``; ``shown_in`` names the tables and figures of
    the numbers. A claim with ``own_images`` needs the paper's data set: classes and numbers of
    labels of CIFAR-10, numbers of Clothing1M.
    """

    id: str
    place: str
    statement: str
    shown_in: tuple[str, ...]
    compare: Callable[[Results], Iterable[Comparison]]
    own_images: bool = False
