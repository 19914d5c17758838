"""Estimated seconds of runs, from finished ones, and of many runs on many machines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.provenance import devices
from chainer_jo.runs.scheduler import Queue
from chainer_jo.runs.store import RunStore

MEASURED = "measured here"
GUESS = "a guess until the first run has finished"
UNKNOWN = "not known on this device until the first run has finished"


@dataclass(frozen=True)
class Cost:
    """Estimates of seconds per run.

    Attributes
    ----------
    seconds_per_epoch : not a number if nothing is known.
    basis : source of the estimate, in words.
    """

    seconds_per_epoch: float
    basis: str

    @classmethod
    def of(
        cls,
        store: RunStore,
        experiments: Sequence[Experiment],
        device: str | None,
        guess: float | None,
    ) -> Cost:
        """Median seconds per epoch of the finished runs among ``experiments``, all of one network,
        data and precision; else the guess.

        Parameters
        ----------
        device : name of the processor or GPU; only runs on such a one count. None: all do.
        guess : seconds per epoch until a run has finished; None: not known.
        """
        measured = [
            result["seconds"] / e.optimization.epochs
            for e in experiments
            if (result := store.result(e)) and result["state"] == "finished"
            if device is None or devices(result) == {device}
        ]
        if measured:
            return cls(statistics.median(measured), MEASURED)
        return cls(guess or math.nan, GUESS if guess else UNKNOWN)

    def seconds(self, experiment: Experiment) -> float:
        """Estimated seconds of one run, alone."""
        return experiment.optimization.epochs * self.seconds_per_epoch


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.4 h`` or ``5.1 days``; ``?`` for what is not a number."""
    if math.isnan(seconds):
        return "?"
    for unit, size in (("days", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def makespan(left: Mapping[Experiment, int], places: int) -> int:
    """Epochs from the first start to the last end of runs to do, ``places`` at a time; ``left`` are
    the epochs of each."""
    queue, now = Queue(list(left)), 0
    running: list[tuple[int, str, Experiment]] = []  # a heap, by when they end
    while queue or running:
        while len(running) < places and (experiment := queue.next(places)):
            heappush(running, (now + left[experiment], experiment.id, experiment))
        now, _, experiment = heappop(running)
        queue.ended(experiment, "finished")
    return now


def longest_chain(left: Mapping[Experiment, int]) -> int:
    """Epochs of the longest sequence that no number of machines shortens: a first step and its
    second, where both are to do, or one other run."""
    chains = (sum(left.get(step, 0) for step in (e, e.first_step) if step) for e in left)
    return max(chains, default=0)
