"""The command behind every script: plans or computes the runs that are missing, and writes the
outputs."""

from __future__ import annotations

import argparse
import logging
import math
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

from chainer_jo import files
from chainer_jo.child_processes import Processes
from chainer_jo.command_line import print_safely, resume_hint, start
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.devices import device_of
from chainer_jo.errors import UserError
from chainer_jo.reproduction.commands.dry_run import run_lines, script_lines, why_lines
from chainer_jo.reproduction.commands.script_flags import Family, parse
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import of_the_paper
from chainer_jo.reproduction.running import provenance, scheduler
from chainer_jo.reproduction.running.computation import Computation
from chainer_jo.reproduction.running.scheduler import Work, longest_first, pending, with_first_steps
from chainer_jo.reproduction.running.starting_labels import check_results
from chainer_jo.reproduction.running.status import Cost, Status, duration
from chainer_jo.reproduction.running.store import RunStore, read_packed
from chainer_jo.reproduction.tables_and_figures.output import Output, Results, trials_by_number
from chainer_jo.text import for_terminal

_logger = logging.getLogger(__name__)

Build = Callable[[Study], Output]
#: The runs to do, and the epochs left of each.
Left = Mapping[Experiment, int]


@dataclass(frozen=True)
class Script:
    """One invocation of a script.

    Attributes
    ----------
    flags : see `chainer_jo.reproduction.commands.script_flags.parse`.
    outputs : tables, figures and claims, by the epochs of their runs, which are computed in this
        order; outputs without runs come last.
    experiments : the runs that the outputs need, in this order; of each output the longest first.
    """

    flags: argparse.Namespace
    study: Study
    outputs: Sequence[Output]
    experiments: Sequence[Experiment]
    computation: Computation
    results: Results

    @property
    def store(self) -> RunStore:
        return self.results.store

    @cached_property
    def cost(self) -> Cost:
        """Estimate from the runs that had finished when it was first asked for."""
        name, device = self.flags.device, None
        if self.flags.cluster is None:  # otherwise runs on all devices count
            of_gpu = provenance.device_name
            device = provenance.cpu_name() if name == "cpu" else of_gpu(device_of(name))
        guess = _seconds_per_epoch(self.study) if name == "cpu" else None
        return Cost.of(self.store, self.experiments, device, guess)

    def left(self) -> Left:
        """The runs to do, and the epochs left of each."""
        if self.flags.fresh:
            return {e: e.optimization.epochs for e in self.experiments}
        return {e: self.store.epochs_left(e) for e in pending(self.experiments, self.store)}


def main(
    builds: Build | Sequence[Build],
    description: str,
    argv: list[str] | None = None,
    *,
    family: Family,
) -> None:
    """Entry point of a script; see `command_line.start`."""
    builds = builds if isinstance(builds, Sequence) else [builds]
    start(partial(parse, description, argv, family), partial(work, builds, family))


def make_script(flags: argparse.Namespace, builds: Sequence[Build], family: Family) -> Script:
    """The script that the flags ask for. Raises UserError for files and noise rates that do not
    fit."""
    study, own_fields = family.resolve(flags)
    store = RunStore(flags.results / study.folder)
    if not (flags.runs or flags.weights or getattr(flags, "features", None)):
        # To show finished runs with pseudo labels does not take the file of their features.
        features = store.features()
        if len(features) == 1:
            study = replace(study, features=features.pop())
    outputs = sorted((build(study) for build in builds), key=_epochs)
    _check_noise_rates(study, outputs)
    computation = Computation(
        device=flags.device,
        engine=flags.engine,
        graph=flags.graph,
        deadline=flags.deadline,
        **own_fields,
    )
    ordered = (e for output in outputs for e in longest_first(output.experiments))
    experiments = list(dict.fromkeys(ordered))
    results = Results(store, study.preset.name, study.data, flags.precision)
    return Script(flags, study, outputs, experiments, computation, results)


def _epochs(output: Output) -> float:
    runs = with_first_steps(output.experiments)
    return sum(e.optimization.epochs for e in runs) if runs else math.inf


def _check_noise_rates(study: Study, outputs: Sequence[Output]) -> None:
    """Raises UserError unless some output has exactly the noise rates of the flag."""
    asked = study.noise_rates
    if asked and all({e.noise.rate for e in out.experiments} != set(asked) for out in outputs):
        raise UserError(
            f"--noise-rates {' '.join(map(str, asked))}: rates are fixed in this script; expected "
            "a script of Tables 1 or 2 or Figures 2 or 3, learning_curves.py or corrected_labels.py"
        )


def _seconds_per_epoch(study: Study) -> float | None:
    """Estimated seconds per epoch on a CPU; None for data that the preset was not timed on."""
    preset, usual = study.preset, study.preset.default_data
    own = usual is None or of_the_paper(study.data) == of_the_paper(usual)
    if not own and preset.image_shape is not None:
        return None
    # fp32 takes 2.9 (`half`) to 3.8 (`paper`) times as long as mixed, see docs/cpu.md.
    slower = 3.3 ** ((preset.precision == "mixed") - (study.precision == "mixed"))
    return slower * preset.seconds_per_iteration * (preset.train_images / preset.batch_size)


def work(builds: Sequence[Build], family: Family, flags: argparse.Namespace) -> None:
    """Plans, or computes and writes."""
    script = make_script(flags, builds, family)
    flags, store, experiments = script.flags, script.store, script.experiments
    left = script.left()
    if flags.run_id:
        print(*why_lines(flags.run_id, experiments, store, left), sep="\n")
        return
    if left and flags.runs:
        _check_backend(script)
    check_results(experiments, store)
    _print_head(script, left)
    note = _note_others(script)
    if flags.dry_run:
        _print_plan(script, left)
        return
    if flags.fresh:
        _bind_data(script)  # with other data than the folder's nothing is computed or deleted
        store.delete(*reversed(experiments))  # no second step without its first
    finished = _run(script, left) if flags.runs else True
    _note_others(script, note)  # runs that other code had begun
    shown = _shown(script)
    if not (flags.runs and experiments):
        _check_trials(script, shown)
    if experiments and store.results():  # else what is known is of runs elsewhere
        files.write_json(store.root / "provenance.json", provenance.collect(store.root))
    for output in shown:
        paths = output.write(script.results, store.root, flags.figures / script.study.folder)
        if finished:
            text = output.text(script.results)
            if sys.stdout.isatty():
                text = for_terminal(text, shutil.get_terminal_size().columns)
            print_safely("", text, sep="\n")
            print_safely("written:", " ".join(map(str, paths)) or "nothing")
    if not shown:
        print("written: nothing")
    if not finished:
        print(f"time is up; {resume_hint(flags.fresh)}")
    missing = [output.missing for output in shown if output.missing]
    if missing and flags.runs:  # without runs, what there is was asked for
        raise UserError(missing[0])


def _check_backend(script: Script) -> None:
    """Raises UserError if this machine cannot compute the runs; with --dry-run it is a note. The
    workers of a cluster are checked one by one."""
    flags = script.flags
    if flags.cluster or (flags.precision, flags.engine) == ("fp32", "auto"):
        return
    from chainer_jo.engine.backend import choose_backend

    try:
        choose_backend(flags.device.partition(":")[0], flags.precision, flags.engine)
    except UserError as error:
        line = str(error)
        if flags.precision != "fp32":
            fp32 = flags.results / replace(script.study, precision="fp32").folder
            line += f"; --precision fp32 computes in float32, in {fp32}"
        if not flags.dry_run:
            raise UserError(line) from None
        _logger.warning(line)


def _print_head(script: Script, left: Left) -> None:
    flags, study = script.flags, script.study
    seconds = script.cost.seconds_together(left, flags.jobs)
    estimated = left and flags.runs and not flags.cluster and not math.isnan(seconds)
    about = f", about {duration(seconds)}" if estimated else ""
    print_safely(
        f"preset {study.preset.name} ({study.preset.summary}) | data {study.data} | "
        f"device {flags.device} | {flags.precision} | "
        f"{len(script.experiments)} runs, {len(left)} to do{about}",
        flush=True,
    )


def _note_others(script: Script, known: str = "") -> str:
    """Warns of finished runs made by other code, unless it is ``known``; returns the note."""
    finished = [r for e in script.experiments if (r := script.store.result(e))]
    note = provenance.other_code(finished)
    if note and note.split()[0] != known.split(" ")[0]:  # the number of runs
        again = (
            "another --results folder" if read_packed(script.store.root, logs=False) else "--fresh"
        )
        _logger.warning("%s; %s repeats the runs", note, again)
    return note


def _print_plan(script: Script, left: Left) -> None:
    experiments, cost = script.experiments, script.cost
    print(*run_lines(experiments, script.store, left, cost), sep="\n")
    if len(script.outputs) > 1:
        print("", *script_lines(script.outputs, left, cost), "", sep="\n")
    total = sum(map(cost.seconds, experiments))
    to_do = sum(left.values()) * cost.seconds_per_epoch
    print(
        f"{len(experiments)} runs, {len(left)} to do; {duration(to_do)} of "
        f"{duration(total)} of computing, {script.flags.jobs} at a time ({cost.basis})"
    )


def _bind_data(script: Script) -> LabelledData:
    """Loads the data once, early, and makes sure that the results folder is this data set's."""
    path = script.store.root / "data.json"
    data = script.study.loader()
    identity = {"data": data.name, "fingerprint": data.fingerprint()}
    bound = files.read_json(path, missing=None)
    if bound not in (None, identity):
        raise UserError(
            f"{path}: the results are from {bound.get('data')} with fingerprint "
            f"{bound.get('fingerprint')}, the data are {data.name} {identity['fingerprint']}; "
            "expected the same data; choose another --results folder for these"
        )
    check_results(script.experiments, script.store, data)  # runs may be copied alone
    if bound is None:
        files.write_json(path, identity)
    return data


def _run(script: Script, left: Left) -> bool:
    """Computes the runs to do; returns False if the time was up first."""
    if not left:
        if any(e.noise.source.with_images for e in script.experiments):
            _bind_data(script)  # real ones are loaded by now; others may not be here
        return True
    computation, precision = script.computation, next(iter(left)).precision
    work = Work(
        RunStore(script.store.root.absolute()), pickle.dumps(script.study.loader), computation
    )
    with _executor(script, work) as (executor, places):
        if computation.device != "cpu" and not script.flags.cluster:
            from chainer_jo.reproduction.running.worker import warm_up

            executor.submit(warm_up, computation, precision)  # while the data are loaded
        data = _bind_data(script)
        for noise in {e.noise for e in left if data.is_clean}:
            noise.source.check(data, computation.label_files)
        with closing(Status(left)) as status:
            return scheduler.compute(script.experiments, work, executor, places, status.show)


@contextmanager
def _executor(script: Script, work: Work) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Processes of this machine, or the workers of a Dask scheduler, and their number."""
    flags = script.flags
    if flags.cluster is None:
        with Processes(flags.jobs, flags.threads) as processes:
            yield processes, lambda: flags.jobs
        return
    try:
        from chainer_jo.reproduction.running.cluster import workers_of
    except ImportError as error:
        raise UserError(
            f"--cluster: expected Dask ({error}): pip install 'chainer_jo[cluster]'"
        ) from None
    with workers_of(flags.cluster, work, flags.precision) as workers:
        yield workers, workers.places


def _shown(script: Script) -> Sequence[Output]:
    """All outputs, or with ``--no-runs`` those with a finished run; if there are several, only
    those that have enough of them."""
    if script.flags.runs:
        return script.outputs
    done = {e.id for e in script.experiments if script.store.result(e)}
    begun = [
        out
        for out in script.outputs
        if any(e.id in done for e in out.experiments) or not (out.experiments or out.missing)
    ]
    if len(script.outputs) == 1:
        return begun
    return [out for out in begun if out.is_worth_showing(script.store)]


def _check_trials(script: Script, outputs: Sequence[Output]) -> None:
    """Raises UserError if results of more trials would be replaced."""
    for output in outputs:
        path = script.store.root / f"{output.name}.json"
        with files.expected(path, "a table or figure; remove the file, it is then written again"):
            before = trials_by_number(files.read_json(path, object, missing=None))
        kept = before & trials_by_number(output.data(script.results) if before else ())
        if kept != before:
            raise UserError(
                f"{path}: {kept.total()} of the {before.total()} trials behind its numbers are "
                "available; use the flags with which it was made, or remove the file"
            )
