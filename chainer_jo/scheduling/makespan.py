"""How long runs would take on many machines, by the order in which they are handed out."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.scheduling.scheduler import Queue


def epochs(experiment: Experiment) -> int:
    """What a run takes: all are of one network and data, and so are their epochs."""
    return experiment.optimization.epochs


def makespan(experiments: Sequence[Experiment], places: int) -> int:
    """Epochs from the first start to the last end of runs to do, ``places`` at a time."""
    queue, now = Queue(experiments), 0
    running: list[tuple[int, str, Experiment]] = []  # a heap, by when they end
    while queue or running:
        while len(running) < places and (experiment := queue.next(places)):
            heappush(running, (now + epochs(experiment), experiment.id, experiment))
        now, _, experiment = heappop(running)
        queue.ended(experiment, "finished")
    return now


def longest_chain(experiments: Sequence[Experiment]) -> int:
    """Epochs that no number of machines can save: of a first step and its second, where both are to
    do, or of the longest other run."""
    to_do = set(experiments)
    chains = (
        epochs(e) + (epochs(e.first_step) if e.first_step in to_do else 0) for e in experiments
    )
    return max(chains, default=0)
