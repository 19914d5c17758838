"""How long runs take, judged by those that have finished."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore

MEASURED = "measured here"
TRIED = "from a few iterations tried here, without evaluation"
GUESS = "a guess until the first run has finished"
UNKNOWN = "not known on this device until the first run has finished"


class Cost:
    """Estimates of seconds per run.

    A finished run with the same network, data and precision tells what an iteration takes here; the
    median over all such runs counts. Before there is one, a few iterations are tried, or else
    ``default`` seconds per iteration are assumed; None: then estimates are not a number.

    Parameters
    ----------
    iterations_per_epoch : training images over batch size.
    probe : given the guessed seconds of all experiments, the seconds that an iteration was found to
        take, or None if that was not tried; called only if no run has finished.

    Attributes
    ----------
    basis : what the estimates rest on, in words.
    """

    def __init__(
        self,
        store: RunStore,
        experiments: Sequence[Experiment],
        iterations_per_epoch: float,
        default: float | None,
        probe: Callable[[float], float | None] = lambda guess: None,
    ) -> None:
        self.iterations_per_epoch = iterations_per_epoch
        measured = []
        for experiment in experiments:
            result = store.result(experiment)
            if result and result["iterations"]:
                measured.append(result["seconds"] / result["iterations"])
        self.basis = MEASURED if measured else GUESS if default else UNKNOWN
        self.seconds_per_iteration = (
            statistics.median(measured) if measured else default or math.nan
        )
        if not measured and (tried := probe(sum(map(self.seconds, experiments)))):
            self.basis, self.seconds_per_iteration = TRIED, tried

    def seconds(self, experiment: Experiment) -> float:
        """Estimated seconds of one run, alone."""
        return (
            experiment.optimization.epochs * self.iterations_per_epoch * self.seconds_per_iteration
        )


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.4 h`` or ``5.1 days``; ``?`` for what is not a number."""
    if math.isnan(seconds):
        return "?"
    for unit, size in (("days", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
