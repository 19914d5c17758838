"""Cells of a table: numbers of finished runs, averaged over trials, next to what the paper
prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore

Quantity = Callable[[RunStore, Experiment], float | None]
FINISHED, DIVERGED = "finished", "diverged"


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Parameters
    ----------
    row, column : what addresses it, as in the table's JSON.
    experiments : one per trial.
    quantity : (store, experiment) -> the trial's number, in percent unless the table says
        otherwise, or None if there is nothing to count; called only when the run and its first
        step have finished.
    paper : the number that the paper prints there, or None.
    bold : whether the paper prints it in bold.
    digits : decimals that it is printed with.
    """

    row: Mapping
    column: Mapping
    experiments: Sequence[Experiment]
    quantity: Quantity
    paper: float | None = None
    bold: bool = False
    digits: int = 1

    def value(self, store: RunStore) -> Value:
        """What the finished trials come to."""
        states = [state(store, experiment) for experiment in self.experiments]
        numbers = [
            self.quantity(store, experiment)
            for experiment, ended in zip(self.experiments, states, strict=True)
            if ended == FINISHED
        ]
        trials = tuple(number for number in numbers if number is not None)
        empty = len(numbers) - len(trials)
        return Value(trials, states.count(DIVERGED), len(self.experiments), empty)

    def markdown(self, store: RunStore) -> str:
        """The number, bold where the paper's is, and [the paper's]."""
        text = self.value(store).text(digits=self.digits)
        text = f"**{text}**" if self.bold else text
        return text if self.paper is None else f"{text} [{self.paper:.{self.digits}f}]"


@dataclass(frozen=True)
class Value:
    """Numbers of the trials of a cell, how many diverged, how many there are to be, and how many
    finished with nothing to count."""

    trials: tuple[float, ...]
    diverged: int
    planned: int
    empty: int = 0

    @property
    def complete(self) -> bool:
        return self.done == self.planned

    @property
    def done(self) -> int:
        """Trials that will not go on."""
        return len(self.trials) + self.diverged + self.empty

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.trials) if self.trials else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation; None for fewer than two trials."""
        return statistics.stdev(self.trials) if len(self.trials) > 1 else None

    def text(self, digits: int = 1) -> str:
        """``91.2 ± 0.3``; ``…`` marks what is unfinished, ``diverged`` what ended so, ``–`` where
        there was nothing to count."""
        parts = []
        if self.trials:
            parts.append(f"{self.mean:.{digits}f}")
            if self.std is not None:
                parts.append(f"± {self.std:.{digits}f}")
        elif self.empty:
            parts.append("–")
        if self.diverged:
            parts.append(f"({self.diverged} of {self.planned} diverged)")
        if not self.complete:
            parts.append(f"({self.done} of {self.planned} trials …)" if self.done else "…")
        return " ".join(parts)


def state(store: RunStore, experiment: Experiment) -> str | None:
    """How a run has ended, `FINISHED` or `DIVERGED`; None if it, or its first step, has not."""
    results = [store.result(e) for e in (experiment, experiment.first_step) if e]
    if any(result and result["state"] == DIVERGED for result in results):
        return DIVERGED
    return FINISHED if all(results) else None


def score(score_name: str, accuracy: str) -> Quantity:
    """The quantity ``score_name`` (``best`` or ``last``) of an accuracy, in percent.

    ``validation`` and ``test`` are the run's own; ``recovery`` is that of the reassigned labels,
    those of the first step, for the method, and of the predictions on the training images for the
    others (Section 5.4).
    """

    def quantity(store: RunStore, experiment: Experiment) -> float:
        if accuracy == "recovery" and experiment.first_step:
            experiment = experiment.first_step
        return 100 * store.result(experiment)[score_name][accuracy]

    return quantity
