"""Cells of a table: numbers of finished runs, averaged over trials, next to what the paper
prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Parameters
    ----------
    row, column : what addresses it, as in the table's JSON.
    experiments : one per trial.
    quantity : (store, experiment) -> the trial's number, in percent unless the table says
        otherwise; called only when the run and its first step have finished.
    paper : the number that the paper prints there, or None.
    bold : whether the paper prints it in bold.
    digits : decimals that it is printed with.
    """

    row: Mapping
    column: Mapping
    experiments: Sequence[Experiment]
    quantity: Callable[[RunStore, Experiment], float]
    paper: float | None = None
    bold: bool = False
    digits: int = 1

    def value(self, store: RunStore) -> Value:
        """What the finished trials come to."""
        trials, diverged = [], 0
        for experiment in self.experiments:
            results = [store.result(e) for e in (experiment, experiment.first_step) if e]
            if any(result and result["state"] == "diverged" for result in results):
                diverged += 1
            elif all(results):
                trials.append(self.quantity(store, experiment))
        return Value(tuple(trials), diverged, len(self.experiments))

    def markdown(self, store: RunStore) -> str:
        """The number, bold where the paper's is, and [the paper's]."""
        text = self.value(store).text(digits=self.digits)
        text = f"**{text}**" if self.bold else text
        return text if self.paper is None else f"{text} [{self.paper:.{self.digits}f}]"


@dataclass(frozen=True)
class Value:
    """Numbers of the trials of a cell, how many diverged, and how many there are to be."""

    trials: tuple[float, ...]
    diverged: int
    planned: int

    @property
    def complete(self) -> bool:
        return len(self.trials) + self.diverged == self.planned

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.trials) if self.trials else None

    @property
    def std(self) -> float | None:
        """Sample standard deviation; None for fewer than two trials."""
        return statistics.stdev(self.trials) if len(self.trials) > 1 else None

    def text(self, digits: int = 1) -> str:
        """``91.2 ± 0.3``; ``…`` marks what is unfinished, ``diverged`` what ended so."""
        parts = []
        if self.trials:
            parts.append(f"{self.mean:.{digits}f}")
            if self.std is not None:
                parts.append(f"± {self.std:.{digits}f}")
        if self.diverged:
            parts.append(f"({self.diverged} of {self.planned} diverged)")
        if not self.complete:
            done = len(self.trials) + self.diverged
            parts.append(f"({done} of {self.planned} trials …)" if done else "…")
        return " ".join(parts)


def score(score_name: str, accuracy: str) -> Callable[[RunStore, Experiment], float]:
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
