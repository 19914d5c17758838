"""Progress of the runs: a line for each that ends; between them a moving line on a terminal, or a
line every minute without one."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping

from chainer_jo.runs.cost import duration
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.scheduler import Event

#: Seconds between two lines where the output is no terminal.
INTERVAL = 60.0


class Status:
    """Shows events of the scheduler on standard output.

    Parameters
    ----------
    left : the runs to do, and the epochs left of each; all epochs are taken to be equally long.
    live : True to allow the moving line: nothing else writes to the terminal meanwhile.
    name : gives the displayed name of a run; None: its id.
    """

    def __init__(
        self,
        left: Mapping[Experiment, int],
        live: bool,
        name: Callable[[Experiment], str] | None = None,
    ) -> None:
        self.total = len(left)
        self.done = 0
        self.started = time.monotonic()
        self._name = name or (lambda experiment: experiment.id)
        self._short = name or (lambda experiment: f"{experiment.kind} {experiment.noise.short}")
        self._live = live and sys.stdout.isatty()
        self._next = self.started + INTERVAL
        self._epochs: dict[Experiment, int] = {}
        self._begun = {e: e.optimization.epochs - epochs for e, epochs in left.items()}
        self._counted = dict(self._begun)

    def show(self, event: Event) -> None:
        experiment = event.experiment
        if isinstance(event.state, int):
            self._epochs[experiment] = self._counted[experiment] = event.state
            self._draw()
            return
        self._epochs.pop(experiment, None)
        self._clear()
        if event.state != "paused":
            self.done += 1
            self._counted[experiment] = experiment.optimization.epochs
        if event.state == "diverged":  # neither its epochs left nor its second step are done
            second = [e for e in self._begun if e.first_step == experiment]
            self.total -= len(second)
            for left_out in (experiment, *second):
                self._begun.pop(left_out, None)
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
        if result is None:
            return "paused"
        if event.state == "diverged":
            optimization = event.experiment.optimization
            return (
                f"diverged in epoch {result['epoch']} "
                f"(learning rate {optimization.learning_rate:g}, "
                f"alpha {event.experiment.alpha:g}, beta {event.experiment.beta:g})"
            )
        evaluated = "test" if "test" in result["last"] else "validation"
        # A user's own validation images may have wrong labels: no accuracy, only agreement.
        words = {"test": "test", "validation": "held-out agreement", "recovery": "recovery"}
        scores = "  ".join(
            f"{words[name]} {100 * result['best'][name]:.1f} > {100 * result['last'][name]:.1f}"
            for name in (evaluated, "recovery")
            if name in result["last"]
        )
        return f"{scores} (best > last)  {duration(result['seconds'])}  {self._left()}"

    def _left(self) -> str:
        elapsed = time.monotonic() - self.started
        left = sum(e.optimization.epochs - self._counted[e] for e in self._begun)
        done = sum(self._counted[e] - epochs for e, epochs in self._begun.items())
        return f"about {duration(elapsed / done * left)} left" if left and done else ""

    def _draw(self) -> None:
        due = time.monotonic() >= self._next
        if not self._epochs or not (self._live or due):
            return
        parts = [
            f"{self._short(e)} {epoch}/{e.optimization.epochs}" for e, epoch in self._epochs.items()
        ]
        if left := self._left():
            parts.append(left)
        line = f"{self.done}/{self.total} | " + " | ".join(parts)
        if self._live:
            # Cut to one row: only the last row of a longer line would be cleared.
            shown = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r\x1b[K{shown}", end="", flush=True)
        else:
            print(line, flush=True)
            self._next = time.monotonic() + INTERVAL

    def _clear(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", flush=True)
