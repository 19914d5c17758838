"""The command behind every script: reads the flags, runs what is missing, writes the outputs."""

from __future__ import annotations

import argparse
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

from chainer_jo import files
from chainer_jo.command_line import resume_hint, say, start
from chainer_jo.commands.flags import parse
from chainer_jo.commands.image_sources import ImageSource, study_of
from chainer_jo.data.image_data import ImageData
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.engine.choice import choose_backend
from chainer_jo.errors import UserError
from chainer_jo.report.dry_run import machines_line, run_lines, script_lines
from chainer_jo.report.output import trials_by_number
from chainer_jo.report.table import Table
from chainer_jo.report.words import of_the_paper
from chainer_jo.runs.cost import Cost, duration, makespan
from chainer_jo.runs.earlier_results import check_results
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.local_pool import LocalPool
from chainer_jo.runs.presets import Study
from chainer_jo.runs.provenance import collect, device_name, other_code
from chainer_jo.runs.run import Settings, device_of
from chainer_jo.runs.scheduler import Event, Pool, Scheduler, pending, with_first_steps
from chainer_jo.runs.status import Status
from chainer_jo.runs.store import RunStore, read_packed, without_digest

_logger = logging.getLogger(__name__)

#: Share of the time that may go into updating tables and figures while runs are computed.
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


def main(
    builds: Build | Sequence[Build],
    description: str,
    argv: list[str] | None = None,
    *,
    images: ImageSource,
) -> None:
    """Entry point of a script; see `command_line.start`."""

    def work(flags: argparse.Namespace) -> None:
        App(flags, builds if isinstance(builds, Sequence) else [builds], images).main()

    start(partial(parse, description, argv, images), work)


class App:
    """One invocation of a script."""

    def __init__(
        self, flags: argparse.Namespace, builds: Sequence[Build], images: ImageSource
    ) -> None:
        self.flags = flags
        source = images.find(flags)
        self.load_data = source.load
        self.study = study_of(flags, images, source)
        self.settings = Settings(
            device=flags.device,
            engine=flags.engine,
            graph=flags.graph,
            deadline=flags.deadline,
            verbose=flags.jobs == 1 and flags.cluster is None,
            **images.settings(flags),
        )
        self.store = RunStore(flags.results / self.study.folder)
        self.figures = flags.figures / self.study.folder
        if not (flags.runs or flags.weights or getattr(flags, "features", None)):
            # To show finished runs with pseudo labels does not take the file of their features.
            features = self.store.features()
            if len(features) == 1:
                self.study = replace(self.study, features=features.pop())
        self.outputs = self._cheapest_first([build(self.study) for build in builds])
        self._check_noise_rates()
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
            "preset": self.study.preset.name,
            "data": source.name,
            "precision": flags.precision,
        }

    def main(self) -> None:
        self._check_precision()
        check_results(self.experiments, self.store)
        self._print_head()
        self._note_others()
        if self.flags.dry_run:
            self._print_plan()
            return
        if self.flags.fresh:
            self._bind_data()  # with other data than the folder's nothing is done, nor forgotten
            self.store.forget(*reversed(self.experiments))  # no second step without its first
        finished = self._run_pending() if self.flags.runs else True
        shown = self._to_show()
        self._check_trials(shown)
        if self.experiments and self.store.results():  # else what is known is of runs elsewhere
            files.write_json(self.store.root / "provenance.json", collect(self.store.root))
        self._write(shown, show=finished)
        if not shown:
            print("written: nothing")
        if not finished:
            print(f"time is up; {resume_hint(self.flags.fresh)}")
        missing = [output.missing for output in shown if output.missing]
        if missing and self.flags.runs:  # without runs, what there is was asked for
            raise UserError(missing[0])

    def _check_precision(self) -> None:
        """Raises UserError if this machine cannot compute the runs; with --dry-run it is a note."""
        flags = self.flags
        waiting = self.experiments if flags.fresh else pending(self.experiments, self.store)
        if not (waiting and flags.runs and self._lacking):
            return
        fp32 = replace(self.study, precision="fp32").folder
        line = f"{self._lacking}; --precision fp32 computes it so, in {flags.results / fp32}"
        if not flags.dry_run:
            raise UserError(line)
        _logger.warning(line)

    @cached_property
    def _lacking(self) -> str:
        """Reason why this machine cannot compute in the runs' precision; empty if it can, or if
        the workers of a cluster compute."""
        flags = self.flags
        if flags.precision == "fp32" or flags.cluster:
            return ""
        try:
            choose_backend(flags.device.partition(":")[0], flags.precision, flags.engine)
        except UserError as error:
            return str(error)
        return ""

    def _check_noise_rates(self) -> None:
        """Raises UserError unless some output has exactly the noise rates of the flag."""
        asked = self.study.noise_rates
        if not asked:
            return
        if all({e.noise.rate for e in out.experiments} != set(asked) for out in self.outputs):
            raise UserError(
                f"--noise-rates {' '.join(f'{rate:g}' for rate in asked)}: the rates are fixed "
                "here; expected Tables 1 and 2, Figures 2 and 3, or a script with one of them"
            )

    def _to_show(self) -> list[Output]:
        """All outputs, or with ``--no-runs`` those with a finished run; if there are several, only
        tables with a complete row or column."""
        if self.flags.runs:
            return self.outputs
        done = {e.id for e in self.experiments if self.store.result(e)}
        begun = [
            out
            for out in self.outputs
            if any(e.id in done for e in out.experiments) or not (out.experiments or out.missing)
        ]
        if len(self.outputs) == 1:
            return begun
        return [out for out in begun if not isinstance(out, Table) or out.has_a_line(self.store)]

    def _cheapest_first(self, outputs: Sequence[Output]) -> list[Output]:
        """Outputs by the epochs of their runs, so that the first are written early.

        Outputs without runs are made from the files of the others, and come last.
        """

        def epochs(output: Output) -> float:
            runs = with_first_steps(output.experiments)
            return sum(e.optimization.epochs for e in runs) if runs else math.inf

        return sorted(outputs, key=epochs)

    @cached_property
    def _cost(self) -> Cost:
        flags, preset = self.flags, self.study.preset
        # Other images than the preset is for may be more, or larger.
        usual = preset.default_data
        alike = (
            usual is None
            or preset.image_shape is None
            or (of_the_paper(self.study.data) == of_the_paper(usual))
        )
        iterations = preset.train_images / preset.batch_size
        guess = preset.seconds_per_iteration if flags.device == "cpu" and alike else None
        device = None if flags.cluster else device_name(device_of(flags.device))
        return Cost.of(self.store, self.experiments, device, guess and guess * iterations)

    def _print_head(self) -> None:
        flags, study = self.flags, self.study
        left = self._epochs_left()
        seconds = makespan(left, flags.jobs) * self._cost.seconds_per_epoch
        estimated = left and flags.runs and not flags.cluster and not math.isnan(seconds)
        about = f", about {duration(seconds)}" if estimated else ""
        say(
            f"preset {study.preset.name} ({study.preset.summary}) | data {study.data} | "
            f"device {flags.device} | {flags.precision} | "
            f"{len(self.experiments)} runs, {len(left)} to do{about}",
            flush=True,
        )

    def _epochs_left(self) -> dict[Experiment, int]:
        """The runs to do, and the epochs left of each."""
        if self.flags.fresh:
            return {e: e.optimization.epochs for e in self.experiments}
        return {e: self.store.epochs_left(e) for e in pending(self.experiments, self.store)}

    def _note_others(self) -> None:
        """Warns of finished runs made by other code, or without digests."""
        finished = [r for e in self.experiments if (r := self.store.result(e))]
        again = "other --results" if read_packed(self.store.root) else "--fresh"
        for note in filter(None, (without_digest(finished), other_code(finished))):
            _logger.warning("%s; %s does a script's runs again", note, again)

    def _print_plan(self) -> None:
        cost, left = self._cost, self._epochs_left()
        print(*run_lines(self.experiments, left, self.store, cost), sep="\n")
        if machines := self.flags.machines:
            print(machines_line(left, machines, self.flags.jobs, cost))
        if len(self.outputs) > 1:
            print("", *script_lines(self.outputs, left, cost), "", sep="\n")
        total = sum(map(cost.seconds, self.experiments))
        to_do = sum(left.values()) * cost.seconds_per_epoch
        print(
            f"{len(self.experiments)} runs, {len(left)} to do; {duration(to_do)} of "
            f"{duration(total)} of computing, {self.flags.jobs} at a time ({cost.basis})"
        )

    def _bind_data(self) -> ImageData | LabelledData:
        """Loads the data once, early, and makes sure that the results folder is this data set's."""
        path = self.store.root / "data.json"
        data = self.load_data()
        identity = {"data": data.name, "fingerprint": data.fingerprint()}
        bound = files.read_json(path, missing=None)
        if bound not in (None, identity):
            raise UserError(
                f"{path}: the results there are of {bound.get('data')} with fingerprint "
                f"{bound.get('fingerprint')}, the data are {data.name} {identity['fingerprint']}; "
                "expected the same data, or another --results folder"
            )
        check_results(self.experiments, self.store, data)  # runs may be copied alone
        if bound is None:
            files.write_json(path, identity)
        return data

    def _run_pending(self) -> bool:
        waiting = pending(self.experiments, self.store)
        if waiting or any(e.noise.kind == "real" for e in self.experiments):
            data = self._bind_data()  # real ones are loaded by now; others may not be here
            if isinstance(data, ImageData) and any(e.noise.kind == "pseudo" for e in waiting):
                self.settings.pseudo.check(data)
        if not waiting:
            return True
        live = not self.settings.verbose
        self.status = Status(self._epochs_left(), live)
        workers = Scheduler(self.store, self._pool(), self._on_event, self.settings.deadline)
        try:
            return workers.work(self.experiments)
        finally:
            self.status.close()

    def _pool(self) -> Pool:
        """The processes that compute: of this machine, or the workers of a Dask scheduler."""
        flags, arguments = self.flags, (self.store, self.load_data, self.settings)
        if flags.cluster is None:
            return LocalPool(*arguments, flags.jobs, flags.threads)
        try:
            from chainer_jo.runs.cluster import Cluster
        except ImportError as error:
            raise UserError(
                f"--cluster needs Dask ({error}): pip install 'chainer_jo[cluster]'"
            ) from None
        return Cluster(flags.cluster, *arguments, flags.threads, flags.precision)

    def _on_event(self, event: Event) -> None:
        """Shows an event, and updates the outputs that it concerns within `REFRESH_SHARE`."""
        self.status.show(event)
        self._stale |= self._concerned[event.experiment]
        now = time.monotonic()
        if now >= self._next_refresh:
            self._write([out for out in self.outputs if out.name in self._stale], show=False)
            self._stale.clear()
            self._next_refresh = now + (time.monotonic() - now) / REFRESH_SHARE

    def _check_trials(self, outputs: Sequence[Output]) -> None:
        """Raises UserError, where nothing runs, if results of more trials would be replaced."""
        if self.flags.runs and self.experiments:
            return
        reports = (out for out in outputs if hasattr(out, "shown"))
        parts = [part for report in reports for part in report.shown(self.store.root)]
        with_data = {out.name: out for out in (*parts, *outputs) if hasattr(out, "data")}
        for output in with_data.values():
            path = self.store.root / f"{output.name}.json"
            with files.expected(path, "it removed, which has it written again"):
                before = trials_by_number(files.read_json(path, object, missing=None))
            kept = before & trials_by_number(output.data(self.store, self.origin) if before else ())
            if kept != before:
                raise UserError(
                    f"{path}: {kept.total()} of the {before.total()} trials behind its numbers are "
                    "here; expected the flags that it was made with, or the file removed"
                )

    def _write(self, outputs: Sequence[Output], show: bool) -> None:
        for output in outputs:
            paths = output.write(self.store, self.origin, self.store.root, self.figures)
            if show:
                say("", output.text(self.store, self.origin), sep="\n")
                say("written:", " ".join(map(str, paths)) or "nothing")
