"""Time that runs take, and their progress on the terminal."""

from __future__ import annotations

import math
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.data.progress import is_live
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.provenance import devices
from chainer_jo.reproduction.running.store import RunStore

#: Seconds between two lines where the output is no terminal.
INTERVAL = 60.0
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

    def seconds_together(self, left: Mapping[Experiment, int], jobs: int) -> float:
        """Estimated seconds of runs with these epochs ``left``, ``jobs`` at a time: their share of
        all epochs, but at least a first step and its second one after the other."""
        chains = (sum(left.get(step, 0) for step in (e, e.first_step) if step) for e in left)
        epochs = max(sum(left.values()) / jobs, *chains, 0)
        return epochs * self.seconds_per_epoch


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.4 h`` or ``5.1 days``; ``?`` for what is not a number."""
    if math.isnan(seconds):
        return "?"
    for unit, size in (("days", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


class Status:
    """Shows progress of runs on standard output; see `scheduler.OnEvent`.

    Parameters
    ----------
    left : the runs to do, and the epochs left of each; all epochs are taken to be equally long.
    """

    def __init__(self, left: Mapping[Experiment, int]) -> None:
        self._todo, self._left = dict(left), dict(left)
        self._running: list[Experiment] = []
        self._total, self._done, self._started = len(left), 0, time.monotonic()
        self._live, self._next = is_live(sys.stdout), self._started + INTERVAL

    def show(self, experiment: Experiment, state: str | int, result: dict | None = None) -> None:
        if isinstance(state, int):
            if experiment not in self._running:
                self._running.append(experiment)
            self._left[experiment] = experiment.optimization.epochs - state
            self._draw()
            return
        self._running = [e for e in self._running if e != experiment]
        self.close()
        if state != "paused":
            self._done += 1
            self._left[experiment] = 0
        if state == "diverged":  # neither its epochs left nor its second step are done
            second = [e for e in self._todo if e.first_step == experiment]
            self._total -= len(second)
            for left_out in (experiment, *second):
                self._todo.pop(left_out, None)
        number = f"{self._done:{len(str(self._total))}}/{self._total}"
        print(f"[{number}] {experiment.id}: {self._outcome(experiment, state, result)}", flush=True)
        self._draw()

    def close(self) -> None:
        """Clears the moving line."""
        if self._live:
            print("\r\x1b[K", end="", flush=True)

    def _outcome(self, experiment: Experiment, state: str, result: dict | None) -> str:
        if result is None:
            return "paused"
        if state == "diverged":
            optimization = experiment.optimization
            return (
                f"diverged in epoch {result['epoch']} "
                f"(learning rate {optimization.learning_rate:g}, "
                f"alpha {experiment.alpha:g}, beta {experiment.beta:g})"
            )
        # A user's own validation images may have wrong labels: no accuracy, only agreement.
        words = {"test": "test", "validation": "held-out agreement", "recovery": "labels"}
        del words["validation" if "test" in result["last"] else "test"]
        scores = "; ".join(
            f"{word} best {100 * result['best'][name]:.1f}, last {100 * result['last'][name]:.1f}"
            for name, word in words.items()
            if name in result["last"]
        )
        return f"{scores}  {duration(result['seconds'])}  {self._time_left()}"

    def _time_left(self) -> str:
        left = sum(self._left[e] for e in self._todo)
        done = sum(self._todo.values()) - left
        elapsed = time.monotonic() - self._started
        return f"about {duration(elapsed / done * left)} left" if left and done else ""

    def _draw(self) -> None:
        due = time.monotonic() >= self._next
        if not self._running or not (self._live or due):
            return
        clauses = [f"{self._done}/{self._total}"]
        for e in self._running:
            epochs = e.optimization.epochs
            clauses.append(f"{e.kind} {e.noise.short} {epochs - self._left[e]}/{epochs}")
        line = " | ".join(filter(None, (*clauses, self._time_left())))
        if self._live:
            # Cut to one row: only the last row of a longer line would be cleared.
            shown = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r\x1b[K{shown}", end="", flush=True)
        else:
            print(line, flush=True)
            self._next = time.monotonic() + INTERVAL
