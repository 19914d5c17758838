"""Curves of a figure, from the epochs logged so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import DIVERGED, FINISHED, state
from chainer_jo.reproduction.trials import Trials


class LogEntry(NamedTuple):
    """An entry of ``log.json`` as figures show it: axis label, factor to its unit, decimals."""

    axis: str
    factor: float
    digits: int


LOG_ENTRIES = {
    "test": LogEntry("test accuracy (%)", 100.0, 1),
    "validation": LogEntry("held-out accuracy (%)", 100.0, 1),
    "recovery": LogEntry("label accuracy (%)", 100.0, 1),
    "accuracy/noisy": LogEntry("noisy labels predicted (%)", 100.0, 1),
    "cross_entropy": LogEntry("training loss (nats)", 1.0, 3),
    "classification": LogEntry("KL divergence (nats)", 1.0, 3),
}


@dataclass(frozen=True)
class Curve:
    """One curve, of one experiment per trial.

    Parameters
    ----------
    family : curves of one family share colour and marker, and differ in dashes.
    keys : identifies the curve for claims.
    panel : last part of the label of a curve that is drawn in a panel of its own.
    levels : heights of dashed lines, and the epochs where they end.
    """

    label: str
    experiments: Sequence[Experiment]
    family: str = ""
    keys: Mapping = field(default_factory=dict)
    panel: str = ""
    levels: Mapping[float, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The label without the panel."""
        return self.label.removesuffix(f", {self.panel}")

    @property
    def length(self) -> int:
        """Epochs of a finished trial."""
        return max(experiment.optimization.epochs for experiment in self.experiments)

    def read(self, store: RunStore, key: str) -> Series:
        """The logged values of ``key``, one of `LOG_ENTRIES`, in the unit of its axis. Trials that
        have diverged are counted and left out, as they are in tables."""
        trials, finished, diverged, factor = {}, 0, 0, LOG_ENTRIES[key].factor
        for experiment in self.experiments:
            ended = state(store, experiment)
            if ended == DIVERGED:
                diverged += 1
                continue
            finished += ended == FINISHED
            if values := [factor * entry[key] for entry in store.log(experiment)]:
                trials[experiment.seed] = values
        return Series(self, trials, finished, diverged)


class Event(NamedTuple):
    """An event after an epoch, and the numbers of its curves."""

    epoch: int
    text: str
    curves: frozenset[int]


def events_of(curves: Sequence[Curve]) -> list[Event]:
    """Events of all curves, by epoch: learning rate drops after it, label updates from it."""
    numbers: dict[tuple[int, str], set[int]] = {}
    for number, curve in enumerate(curves):
        for run in curve.experiments:
            events = [(drop, "lr/10") for drop in run.optimization.drops]
            if run.relabelling:
                events.append((run.relabelling.start, "updates start"))
            for event in events:
                numbers.setdefault(event, set()).add(number)
    return [Event(*event, frozenset(numbers[event])) for event in sorted(numbers)]


@dataclass(frozen=True)
class Series:
    """Numbers of a curve, by the trial's seed, one per epoch; an unfinished trial has fewer epochs.
    ``finished`` and ``diverged`` are numbers of trials."""

    curve: Curve
    trials: Mapping[int, Sequence[float]]
    finished: int
    diverged: int

    @property
    def planned(self) -> int:
        return len(self.curve.experiments)

    @property
    def complete(self) -> bool:
        return self.finished + self.diverged == self.planned

    @property
    def epochs(self) -> int:
        """Largest number of epochs over the trials."""
        return max(map(len, self.trials.values()), default=0)

    @cached_property
    def by_epoch(self) -> list[Trials]:
        """Numbers by epoch, over the trials that have finished the epoch."""
        return [
            Trials({seed: v[epoch] for seed, v in self.trials.items() if len(v) > epoch})
            for epoch in range(self.epochs)
        ]

    @property
    def state(self) -> str:
        """A note for the legend; empty if every trial has finished."""
        if self.diverged:
            return f"{self.diverged} of {self.planned} diverged"
        if self.complete:
            return ""
        if self.finished:
            return f"{self.finished} of {self.planned} trials"
        return f"{self.epochs} of {self.curve.length} epochs" if self.trials else "no epochs yet"
