"""Cells of a table: numbers of finished runs, averaged over trials, next to what the paper
prints."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper.claims.scatter import Estimate

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
    paper_bold : whether the paper prints it in bold.
    digits : decimals that it is printed with.
    competes : whether it can be the best of its column or row.
    """

    row: Mapping
    column: Mapping
    experiments: Sequence[Experiment]
    quantity: Quantity
    paper: float | None = None
    paper_bold: bool = False
    digits: int = 1
    competes: bool = True

    def value(self, store: RunStore) -> Value:
        """What the finished trials come to."""
        states = [state(store, experiment) for experiment in self.experiments]
        numbers = {
            experiment.seed: self.quantity(store, experiment)
            for experiment, ended in zip(self.experiments, states, strict=True)
            if ended == FINISHED
        }
        counted = {seed: number for seed, number in numbers.items() if number is not None}
        empty = len(numbers) - len(counted)
        return Value(counted, states.count(DIVERGED), len(self.experiments), empty)

    def markdown(self, store: RunStore, best: bool = False) -> str:
        """The number, bold if it is the ``best``, and [the paper's], bold where that is."""
        text = self.value(store).text(digits=self.digits)
        text = f"**{text}**" if best else text
        if self.paper is None:
            return text
        paper = f"{self.paper:.{self.digits}f}"
        return f"{text} [**{paper}**]" if self.paper_bold else f"{text} [{paper}]"


@dataclass(frozen=True)
class Value:
    """Numbers of the trials of a cell by their seed, how many diverged, how many there are to be,
    and how many finished with nothing to count."""

    by_seed: Mapping[int, float]
    diverged: int
    planned: int
    empty: int = 0

    @property
    def trials(self) -> tuple[float, ...]:
        """The numbers, by trial."""
        return tuple(self.by_seed.values())

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
        there was nothing to count. Fewer trials than planned are counted."""
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
        elif self.empty and self.trials:
            parts.append(f"({len(self.trials)} of {self.planned} trials)")
        return " ".join(parts)


def best_of(cells: Sequence[Cell], store: RunStore) -> list[Cell]:
    """The cells with the highest mean, and those that the trials cannot tell from it; none while
    one of them has no trial yet.

    Trials tell a difference if its 95 % confidence interval, trial by trial, lies above 0, as for
    claims; fewer than two common trials tell any difference that is shown.
    """
    competing = [(cell, cell.value(store)) for cell in cells if cell.competes]
    if not all(value.done for _, value in competing):
        return []
    means = [(cell, Estimate(value.by_seed)) for cell, value in competing if value.trials]
    if not means:
        return []
    highest = max((value for _, value in means), key=lambda value: value.mean)
    return [cell for cell, value in means if not _surely_above(highest, value, cell.digits)]


def _surely_above(a: Estimate, b: Estimate, digits: int) -> bool:
    difference = a - b
    if difference.interval is None:
        return round(a.mean, digits) > round(b.mean, digits)
    return difference.interval[0] > 0


def state(store: RunStore, experiment: Experiment) -> str | None:
    """How a run has ended, `FINISHED` or `DIVERGED`; None if it, or its first step, has not."""
    results = [store.result(e) for e in (experiment, experiment.first_step) if e]
    if any(result and result["state"] == DIVERGED for result in results):
        return DIVERGED
    return FINISHED if all(results) else None


def score(score_name: str, accuracy: str) -> Quantity:
    """The quantity ``score_name`` (``best`` or ``last``) of an accuracy, in percent.

    ``validation`` and ``test`` are the run's own; ``recovery`` is that of the reassigned labels,
    those of the first step, for the method (Section 5.4), and of the predictions on the training
    images for the others (Section 5.5).
    """

    def quantity(store: RunStore, experiment: Experiment) -> float:
        if accuracy == "recovery" and experiment.first_step:
            experiment = experiment.first_step
        return 100 * store.result(experiment)[score_name][accuracy]

    return quantity


def noisy_labels_right(store: RunStore, experiment: Experiment) -> float:
    """The share of the labels that a run was given that is right, in percent."""
    return 100 * store.result(experiment)["noisy_labels_right"]
