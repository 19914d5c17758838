"""What every script does: read the flags, run what is missing, write the tables and figures."""

from __future__ import annotations

import logging
import math
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from chainer_jo import files
from chainer_jo.commands.options import Options, parse
from chainer_jo.commands.plan import run_lines, script_lines
from chainer_jo.commands.status import Status
from chainer_jo.datasets import source
from chainer_jo.errors import UserError
from chainer_jo.experiments.cost import Cost, duration
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.provenance import collect, other_code
from chainer_jo.experiments.pseudo import PseudoSource
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.scheduler import Event, Scheduler, pending, with_first_steps
from chainer_jo.experiments.store import RunStore

_logger = logging.getLogger(__name__)

#: How much of the time that runs take may go into bringing tables and figures up to date meanwhile.
REFRESH_SHARE = 0.02


class Output(Protocol):
    """A table or figure: the runs that it needs, and how it is written from those that have
    finished."""

    name: str
    experiments: Sequence[Experiment]
    missing: str  # what could not be shown for want of an input, in one line; empty if nothing

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]: ...

    def text(self, store: RunStore, origin: dict) -> str: ...


Build = Callable[[Study], Output]


def main(builds: Build | Sequence[Build], description: str, argv: list[str] | None = None) -> None:
    """Entry point of a script; ends the process with 0, 2 (bad input) or 130 (interrupted)."""
    logging.basicConfig(level=logging.WARNING, format="note: %(message)s")
    # Like Ctrl-C: otherwise the processes of the runs would live on until their epoch's end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        options = parse(description, argv)
        App(options, builds if isinstance(builds, Sequence) else [builds]).main()
    except UserError as error:
        sys.exit(_fail(f"error: {error}", 2))
    except KeyboardInterrupt:
        sys.exit(_fail("\ninterrupted; the same command continues where this one stopped", 130))


def _fail(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code


class App:
    """One invocation of a script."""

    def __init__(self, options: Options, builds: Sequence[Build]) -> None:
        self.options = options
        self.started = time.monotonic()
        found = source.find(options.data)
        self.load_data = found.load
        device = "@numpy" if options.device == "cpu" else f"@cupy:{options.device[5:]}"
        self.pseudo = PseudoSource(options.features, options.resnet50_weights, device)
        self.study = Study(
            options.preset,
            found.name,
            options.trials,
            options.seed,
            options.precision,
            options.noise_rates,
            self.pseudo.name(found.name),
        )
        self.store = RunStore(options.results / self.study.folder)
        self.figures = options.figures / self.study.folder
        self.outputs = self._cheapest_first([build(self.study) for build in builds])
        self.experiments = with_first_steps(
            [e for output in self.outputs for e in output.experiments]
        )
        self._concerned = defaultdict(set)
        for out in self.outputs:
            for experiment in with_first_steps(out.experiments):
                self._concerned[experiment].add(out.name)
        self._stale: set[str] = set()
        self._next_refresh = 0.0
        self.origin = {
            "preset": options.preset.name,
            "data": found.name,
            "precision": options.precision,
        }

    def main(self) -> None:
        self._print_head()
        self._note_other_code()
        if self.options.dry_run:
            self._print_plan()
            return
        if self.options.fresh:
            for experiment in self.experiments:
                self.store.forget(experiment)
        if self.experiments:
            self._bind_data()
        finished = self._run_pending()
        if self.experiments:
            files.write_json(self.store.root / "provenance.json", collect(self.store.root))
        self._write(self.outputs, show=finished)
        if not finished:
            print("time is up; the same command continues where this one stopped")
        missing = [output.missing for output in self.outputs if output.missing]
        if missing:
            raise UserError(missing[0])

    def _cheapest_first(self, outputs: Sequence[Output]) -> list[Output]:
        """In the order of their epochs, so that as much as possible is there early.

        What needs no runs is written from what the others have written, and comes last.
        """

        def epochs(output: Output) -> float:
            runs = with_first_steps(output.experiments)
            return sum(e.optimization.epochs for e in runs) if runs else math.inf

        return sorted(outputs, key=epochs)

    def _cost(self) -> Cost:
        preset = self.options.preset
        return Cost(
            self.store,
            self.experiments,
            preset.train_images / preset.batch_size,
            preset.seconds_per_iteration,
        )

    def _print_head(self) -> None:
        options, study = self.options, self.study
        waiting = pending(self.experiments, self.store) if not options.fresh else self.experiments
        cost = self._cost()
        seconds = sum(map(cost.seconds, waiting)) / options.jobs
        about = (
            f", about {duration(seconds)}"
            if waiting and (cost.measured or options.device == "cpu")
            else ""
        )
        print(
            f"preset {study.preset.name} ({study.preset.summary}) | data {study.data} | "
            f"device {options.device} | {options.precision} | {len(self.experiments)} runs, "
            f"{len(waiting)} to do{about}",
            flush=True,
        )

    def _note_other_code(self) -> None:
        finished = [r for e in self.experiments if (r := self.store.result(e))]
        if note := other_code(finished):
            _logger.warning(note)

    def _print_plan(self) -> None:
        cost, waiting = self._cost(), set(pending(self.experiments, self.store))
        print(*run_lines(self.experiments, waiting, self.store, cost), sep="\n")
        if len(self.outputs) > 1:
            print("", *script_lines(self.outputs, waiting, cost), "", sep="\n")
        total, left = (sum(map(cost.seconds, part)) for part in (self.experiments, waiting))
        basis = "measured here" if cost.measured else "a guess until the first run has finished"
        print(
            f"{len(self.experiments)} runs, {len(waiting)} to do; {duration(left)} of "
            f"{duration(total)} of computing, {self.options.jobs} at a time ({basis})"
        )

    def _bind_data(self) -> None:
        """Loads the data once, early, and makes sure that the results folder is this data set's."""
        path = self.store.root / "data.json"
        data = self.load_data()
        found = {"data": data.name, "fingerprint": data.fingerprint()}
        if path.exists():
            bound = files.read_json(path)
            if bound != found:
                raise UserError(
                    f"{path}: the results there are of {bound.get('data')} with fingerprint "
                    f"{bound.get('fingerprint')}, the data are {data.name} {found['fingerprint']}; "
                    "expected the same data, or another --results folder"
                )
        else:
            files.write_json(path, found)

    def _run_pending(self) -> bool:
        options = self.options
        waiting = pending(self.experiments, self.store)
        if not waiting:
            return True
        deadline = None if options.time_budget is None else self.started + 60 * options.time_budget
        settings = Settings(
            options.device,
            options.engine,
            options.graph,
            deadline,
            pseudo=self.pseudo,
            verbose=options.jobs == 1,
        )
        self.status = Status(len(waiting), self._cost(), options.jobs, live=not settings.verbose)
        scheduler = Scheduler(
            self.store, self.load_data, settings, options.jobs, options.threads, self._on_event
        )
        try:
            return scheduler.work(self.experiments)
        finally:
            self.status.close()

    def _on_event(self, event: Event) -> None:
        """Shows what happened, and now and then brings up to date what it concerned."""
        self.status.show(event)
        self._stale |= self._concerned[event.experiment]
        now = time.monotonic()
        if now >= self._next_refresh:
            self._write([out for out in self.outputs if out.name in self._stale], show=False)
            self._stale.clear()
            self._next_refresh = now + (time.monotonic() - now) / REFRESH_SHARE

    def _write(self, outputs: Sequence[Output], show: bool) -> None:
        for output in outputs:
            paths = output.write(self.store, self.origin, self.store.root, self.figures)
            if show:
                print("", output.text(self.store, self.origin), sep="\n")
                print("written:", *paths)
