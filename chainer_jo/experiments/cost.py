"""How long runs take, judged by those that have finished."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore


class Cost:
    """Estimates of seconds per run.

    A finished run with the same network, data and precision tells what an iteration takes here; the
    median over all such runs counts. Before there is one, ``default`` seconds per iteration are
    assumed.

    Parameters
    ----------
    iterations_per_epoch : training images over batch size.
    """

    def __init__(
        self,
        store: RunStore,
        experiments: Iterable[Experiment],
        iterations_per_epoch: float,
        default: float,
    ) -> None:
        self.iterations_per_epoch = iterations_per_epoch
        measured = []
        for experiment in experiments:
            result = store.result(experiment)
            if result and result["iterations"]:
                measured.append(result["seconds"] / result["iterations"])
        self.measured = bool(measured)
        self.seconds_per_iteration = statistics.median(measured) if measured else default

    def seconds(self, experiment: Experiment) -> float:
        """Estimated seconds of one run, alone."""
        return (
            experiment.optimization.epochs * self.iterations_per_epoch * self.seconds_per_iteration
        )


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.4 h`` or ``5.1 days``."""
    for unit, size in (("days", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
