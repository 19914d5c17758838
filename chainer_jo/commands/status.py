"""How far the runs are: a line for each that ends, and on a terminal one more that moves."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from chainer_jo.experiments.cost import Cost, duration
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.scheduler import Event


class Status:
    """Shows events of the scheduler on standard output.

    Parameters
    ----------
    total : runs to do.
    jobs : runs side by side.
    live : whether the moving line may be used: nothing else writes to the terminal meanwhile.
    name : what runs are called.
    """

    def __init__(
        self,
        total: int,
        cost: Cost,
        jobs: int,
        live: bool,
        name: Callable[[Experiment], str] = lambda experiment: experiment.id,
    ) -> None:
        self.total = total
        self.done = 0
        self.jobs = jobs
        self.cost = cost
        self.started = time.monotonic()
        self._name = name
        self._live = live and sys.stdout.isatty()
        self._epochs: dict[Experiment, int] = {}

    def show(self, event: Event) -> None:
        experiment = event.experiment
        if isinstance(event.state, int):
            self._epochs[experiment] = event.state
            self._draw()
            return
        self._epochs.pop(experiment, None)
        self._clear()
        if event.state != "paused":
            self.done += 1
        print(
            f"[{self.done:{len(str(self.total))}}/{self.total}] {self._name(experiment)}: "
            f"{self._outcome(event)}",
            flush=True,
        )
        self._draw()

    def close(self) -> None:
        self._clear()

    def _outcome(self, event: Event) -> str:
        result = event.result
        if event.state == "paused":
            return "paused"
        if event.state == "diverged":
            optimization = event.experiment.optimization
            return (
                f"diverged in epoch {result['epoch']} "
                f"(learning rate {optimization.learning_rate:g}, "
                f"alpha {event.experiment.alpha:g}, beta {event.experiment.beta:g})"
            )
        scores = "  ".join(
            f"{name} {100 * result['best'][name]:.1f} > {100 * result['last'][name]:.1f}"
            for name in ("test" if "test" in result["last"] else "validation", "recovery")
            if name in result["last"]
        )
        return f"{scores} (best > last)  {duration(result['seconds'])}  {self._left()}"

    def _left(self) -> str:
        elapsed = time.monotonic() - self.started
        return (
            f"about {duration(elapsed / self.done * (self.total - self.done))} left"
            if self.total > self.done
            else ""
        )

    def _draw(self) -> None:
        if self._live and self._epochs:
            parts = [
                f"{e.kind} {e.noise.short} {epoch}/{e.optimization.epochs}"
                for e, epoch in self._epochs.items()
            ]
            print(f"\r\x1b[K{self.done}/{self.total} | " + " | ".join(parts), end="", flush=True)

    def _clear(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", flush=True)
