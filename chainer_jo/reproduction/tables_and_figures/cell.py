"""Numbers of tables: a quantity of runs, over trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.trials import Trials

Quantity = Callable[[RunStore, Experiment], float | None]
FINISHED, DIVERGED = "finished", "diverged"


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Parameters
    ----------
    row, column : its place, as in the table's JSON.
    experiments : one per trial.
    quantity : (store, experiment) -> the trial's number, in percent unless the table says
        otherwise, or None if there is nothing to count; called only when the run and its first
        step have finished.
    paper, paper_bold : the number that the paper prints there, if any, and whether in bold.
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

    @property
    def keys(self) -> dict:
        """Row and column together."""
        return {**self.row, **self.column}

    def trials(self, store: RunStore) -> Trials:
        """The numbers of the trials that have ended."""
        return trials(store, self.experiments, self.quantity)

    def markdown(self, store: RunStore, best: bool = False, beside_paper: bool = False) -> str:
        """``91.2 ± 0.3``, bold if it is the ``best``; ``beside_paper``: next to the paper's number
        in brackets. ``…`` marks what is unfinished, ``–`` where there was nothing to count. Fewer
        trials than planned are counted; a number of one trial has no spread."""
        ended = self.trials(store)
        counted, parts = len(ended.finished), []
        if counted:
            parts.append(ended.rounded(self.digits))
        elif ended.empty:
            parts.append("–")
        if ended.diverged:
            parts.append(f"({ended.diverged} of {ended.planned} diverged)")
        if not ended.complete and ended.done > 1:
            parts.append(f"({ended.done} of {ended.planned} trials …)")
        elif not ended.complete and not counted:
            parts.append("…")
        elif ended.empty and counted:
            parts.append(f"({counted} of {ended.planned} trials)")
        number = f"**{' '.join(parts)}**" if best else " ".join(parts)
        if not beside_paper or self.paper is None:
            return number
        paper = f"{self.paper:.{self.digits}f}"
        return f"{number} [**{paper}**]" if self.paper_bold else f"{number} [{paper}]"


def trials(store: RunStore, experiments: Sequence[Experiment], quantity: Quantity) -> Trials:
    """A quantity of the runs that have ended, by seed; None of a diverged one."""
    numbers: dict[int, float | None] = {}
    empty = 0
    for experiment in experiments:
        ended = state(store, experiment)
        if ended == DIVERGED:
            numbers[experiment.seed] = None
        elif ended and (number := quantity(store, experiment)) is not None:
            numbers[experiment.seed] = number
        elif ended:
            empty += 1
    return Trials(numbers, len(experiments), empty)


def best_of(cells: Sequence[Cell], store: RunStore) -> list[Cell]:
    """The cells with the highest mean as printed; none while one has fewer trials than another."""
    competing = [(cell, cell.trials(store)) for cell in cells if cell.competes]
    means = [(cell, round(t.mean, cell.digits)) for cell, t in competing if t.finished]
    if not means or len({t.done for _, t in competing}) > 1:
        return []
    highest = max(mean for _, mean in means)
    return [cell for cell, mean in means if mean == highest]


def state(store: RunStore, experiment: Experiment) -> str | None:
    """The end of a run, `FINISHED` or `DIVERGED`; None if it, or its first step, has not ended."""
    results = [store.result(e) for e in (experiment, experiment.first_step) if e]
    if any(ended and ended["state"] == DIVERGED for ended in results):
        return DIVERGED
    return FINISHED if all(results) else None


def result(store: RunStore, experiment: Experiment) -> dict:
    """The result of a run that has ended; ValueError for another."""
    if (ended := store.result(experiment)) is None:
        raise ValueError(f"{experiment.id} has not ended")
    return ended


def score(score_name: str, accuracy: str) -> Quantity:
    """The quantity ``score_name`` (``best`` or ``last``) of an accuracy, in percent.

    ``validation`` and ``test`` are the run's own. ``recovery`` scores the final labels of the first
    step for the joint method (Section 5.4), and the predictions on the training images for the
    other methods (Section 5.5).
    """

    def quantity(store: RunStore, experiment: Experiment) -> float:
        run = (accuracy == "recovery" and experiment.first_step) or experiment
        return 100 * result(store, run)[score_name][accuracy]

    return quantity


def noisy_labels_right(store: RunStore, experiment: Experiment) -> float:
    """Accuracy (percent) of the noisy labels of a run."""
    return 100 * result(store, experiment)["noisy_labels_right"]
