"""What the Clothing1M scripts do, alone or under mpiexec: `app` for images that stay on disk."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import chainer

from chainer_jo.commands.app import Output
from chainer_jo.commands.options import Options, parse
from chainer_jo.datasets import clothing1m, clothing1m_standin
from chainer_jo.datasets.clothing1m import Clothing1M
from chainer_jo.errors import UserError
from chainer_jo.experiments.clothing1m import PRESETS, STANDIN, Clothing1MStudy
from chainer_jo.experiments.clothing1m_run import Clothing1MRun, Clothing1MSettings
from chainer_jo.experiments.cost import duration
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.scheduler import pending, with_first_steps
from chainer_jo.experiments.store import RunStore
from chainer_jo.training.extensions import Paused
from chainer_jo.training.ranks import Ranks, connect

FLAGS = """
For Clothing1M, --data is its folder, and besides: --classes FROM TO (the pair that a figure shows),
--batch-size N (of the global batch; the paper's is 32), --workers N (decoding processes of each
rank), --shards N (parts of a batch, each batch-normalised by itself; as many as ranks). With
several GPUs: mpiexec -n N python SCRIPT.
"""
#: Seconds that other ranks give the first to say what is wrong with what all were given.
PATIENCE = 3


@dataclass(frozen=True)
class Context:
    """What an output is built from: the experiments, the data, the pair of classes asked for."""

    study: Clothing1MStudy
    data: Clothing1M
    classes: tuple[str, str] | None


Build = Callable[[Context], Output]


def main(builds: Build | Sequence[Build], description: str, argv: list[str] | None = None) -> None:
    """Entry point of a script; ends the process with 0, 2 (bad input) or 130 (interrupted)."""
    logging.basicConfig(level=logging.WARNING, format="note: %(message)s")
    ranks = Ranks()
    try:
        own, rest = _own_flags(sys.argv[1:] if argv is None else argv)
        options = parse(f"{description} {' '.join(FLAGS.split())}", rest)
        ranks = connect(options.device != "cpu")
        Clothing1MApp(
            options, own, builds if isinstance(builds, Sequence) else [builds], ranks
        ).main()
    except UserError as error:
        _fail(ranks, f"error: {error}", 2)
    except KeyboardInterrupt:
        _fail(ranks, "\ninterrupted; the same command continues where this one stopped", 130)


def _fail(ranks: Ranks, line: str, code: int) -> None:
    if not ranks.is_first:
        time.sleep(PATIENCE)
    print(line, file=sys.stderr, flush=True)
    ranks.abort(code)


def _own_flags(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--classes", nargs=2, metavar=("FROM", "TO"))
    for flag in ("--batch-size", "--workers", "--shards"):
        parser.add_argument(flag, type=int)
    try:
        own, rest = parser.parse_known_args(argv)
    except argparse.ArgumentError as error:
        raise UserError(f"{error} (--help lists the flags)") from None
    for name, least in (("batch_size", 1), ("workers", 0), ("shards", 1)):
        value = getattr(own, name)
        if value is not None and value < least:
            raise UserError(f"--{name.replace('_', '-')} {value}: expected at least {least}")
    return own, rest


class Clothing1MApp:
    """One invocation of a script, on each of its ranks; the first one reads, writes and speaks."""

    def __init__(
        self, options: Options, own: argparse.Namespace, builds: Sequence[Build], ranks: Ranks
    ) -> None:
        if options.preset.name not in PRESETS:
            raise UserError(f"--preset {options.preset.name}: expected {' or '.join(PRESETS)} here")
        for flag in ("trials", "noise_rates", "features"):
            if getattr(options, flag) is not None:
                raise UserError(f"--{flag.replace('_', '-')}: has no meaning for Clothing1M")
        self.options = options
        self.ranks = ranks
        preset = PRESETS[options.preset.name]
        self.data, name = self._load(preset.default_data)
        self.study = Clothing1MStudy(
            preset,
            name,
            options.resnet50_weights,
            options.seed,
            options.precision,
            own.batch_size,
        )
        deadline = options.time_budget and time.monotonic() + 60 * options.time_budget
        self.settings = Clothing1MSettings(
            options.device,
            options.engine,
            deadline,
            verbose=ranks.is_first,
            weights=options.resnet50_weights,
            workers=own.workers,
            shards=own.shards,
        )
        self.store = RunStore(options.results / self.study.folder)
        self.figures = options.figures / self.study.folder
        self.origin = {
            "preset": preset.name,
            "data": name,
            "precision": options.precision,
        }
        classes = own.classes and tuple(own.classes)
        self.outputs: list[Output] = []
        if ranks.is_first:
            context = Context(self.study, self.data, classes)
            self.outputs = [build(context) for build in builds]
        experiments = [e for output in self.outputs for e in output.experiments]
        self.experiments: list[Experiment] = ranks.broadcast(with_first_steps(experiments))

    def _load(self, default: str | None) -> tuple[Clothing1M | None, str]:
        """The data set on the first rank, and its name on all."""
        data, name = None, None
        if self.ranks.is_first:
            given = self.options.data
            if given == self.options.preset.default_data:  # that is, not given
                if default != STANDIN:
                    raise UserError(
                        "--data: expected the folder of Clothing1M, which its authors give out on "
                        "request; --preset digits runs on a stand-in"
                    )
                cache = Path(chainer.dataset.get_dataset_directory("chainer_jo"))
                folder = cache / f"{STANDIN}-{clothing1m_standin.VERSION}"
                data = clothing1m.load(clothing1m_standin.write(folder))
                name = STANDIN
            else:
                folder = Path(os.path.abspath(os.path.expanduser(given)))
                if not folder.is_dir():
                    raise UserError(f"--data {given!r}: no such folder, expected Clothing1M's")
                data = clothing1m.load(folder)
                name = "clothing1m" if data.is_published_size else folder.name
        return data, self.ranks.broadcast(name)

    def main(self) -> None:
        waiting = self._waiting()
        if self.ranks.is_first:
            self._print_head(waiting)
        if self.options.dry_run:
            return
        finished = self._work(waiting)
        if not self.ranks.is_first:
            return
        self._write(show=finished)
        if not finished:
            print("time is up; the same command continues where this one stopped")

    def _waiting(self) -> list[Experiment]:
        """The runs to do, first steps first, the same on all ranks."""
        if self.options.fresh and not self.options.dry_run and self.ranks.is_first:
            for experiment in self.experiments:
                self.store.forget(experiment)
        return self.ranks.broadcast(
            pending(self.experiments, self.store) if self.ranks.is_first else None
        )

    def _print_head(self, waiting: Sequence[Experiment]) -> None:
        preset, options = self.study.preset, self.options
        print(
            f"preset {preset.name} ({preset.summary}) | data {self.study.data}, "
            f"{len(self.data.train)} training images | device {options.device} | "
            f"{self.ranks.size} rank{'s' * (self.ranks.size > 1)} | {options.precision} | "
            f"{len(self.experiments)} runs, {len(waiting)} to do",
            flush=True,
        )
        for experiment in self.experiments if options.dry_run else []:
            result = self.store.result(experiment)
            state = "to do" if experiment in waiting else result["state"]
            took = duration(result["seconds"]) if result else ""
            print(f"{state:9} {took:>8}  {experiment.id}")

    def _work(self, waiting: Sequence[Experiment]) -> bool:
        """Runs what is missing; False if the time was up first."""
        for experiment in waiting:
            if self.ranks.is_first:
                print(f"\n{experiment.id}", flush=True)
            with self._lock(experiment):
                run = Clothing1MRun(experiment, self.data, self.store, self.settings, self.ranks)
                try:
                    run.finish()
                except Paused:
                    return False
            if self.ranks.is_first:
                self._write(show=False)
        return True

    @contextlib.contextmanager
    def _lock(self, experiment: Experiment):
        """Holds the run on the first rank, for all."""
        if not self.ranks.is_first:
            self.ranks.broadcast(None)
            yield
            return
        with self.store.lock(experiment) as mine:
            if not mine:
                raise UserError(f"run {experiment.id}: another process is at it")
            self.ranks.broadcast(None)
            yield

    def _write(self, show: bool) -> None:
        for output in self.outputs:
            paths = output.write(self.store, self.origin, self.store.root, self.figures)
            if show:
                text = output.text(self.store, self.origin)
                print(f"\n{text}\nwritten: {' '.join(map(str, paths))}", flush=True)
