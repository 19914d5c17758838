"""The flags that every script takes."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import chainer

from chainer_jo import _compat
from chainer_jo.commands.suite import Options, Suite
from chainer_jo.cores import usable_cores
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import PRECISIONS
from chainer_jo.functions.providers import ENGINES

_logger = logging.getLogger(__name__)


class Parser(argparse.ArgumentParser):
    """Reports a wrong flag in one line."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (--help lists the flags)")


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Adds the default to the help of flags that take a value and have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or isinstance(action.default, bool):
            return action.help
        return super()._get_help_string(action)


def parse(description: str, argv: list[str] | None, suite: Suite) -> Options:
    """Reads the command line.

    Raises
    ------
    UserError
        for an unknown flag, or a value that is not what the flag expects.
    """
    parser = Parser(
        description=description,
        allow_abbrev=False,
        formatter_class=_Help,
    )
    add = parser.add_argument
    add(
        "--preset",
        default="auto",
        help=f"{', '.join(suite.presets)}; auto: paper with a CUDA GPU, else digits",
    )
    add("--data", help=f"{suite.data_help}; default: the preset's")
    add("--trials", type=int, help="trials of every cell; default: the preset's")
    add_computing_flags(add, "fp32, but for the preset half mixed")
    add("--results", type=Path, default=Path("results"), help="folder for runs and tables")
    add("--figures", type=Path, default=Path("figures"), help="folder for figures")
    add("--seed", type=int, default=0, help="seed of the first trial; the next one's is one more")
    add(
        "--resnet50-weights",
        metavar="FILE",
        help=f"ImageNet ResNet-50, npz or safetensors, {suite.weights_help}",
    )
    add(
        "--dry-run",
        action="store_true",
        help="list runs, which are finished, and the estimated cost; run nothing",
    )
    add(
        "--no-runs",
        dest="runs",
        action="store_false",
        help="write what can be shown of the runs that have finished; run nothing",
    )
    add(
        "--fewer",
        action="store_true",
        help="with --no-runs, replace also what more trials have gone into than there are",
    )
    add(
        "--fresh",
        action="store_true",
        help="forget this script's runs and do them again; left out, what was begun goes on",
    )
    add(
        "--cluster",
        metavar="ADDRESS",
        help="run on the workers of this Dask scheduler, an address or a scheduler file; they need "
        "--results on a folder that all machines share",
    )
    add(
        "--machines",
        type=int,
        metavar="N",
        help="with --dry-run: the time on so many machines, --jobs runs on each",
    )
    suite.add_flags(add)
    return _checked(parser.parse_args(argv), suite)


def add_computing_flags(add: Callable[..., Any], precision: str) -> None:
    """How runs are computed, which is the same for all of them.

    Parameters
    ----------
    add : argparse's.
    precision : what ``auto`` means for it, in words.
    """
    add("--device", default="auto", help="cpu, cuda or cuda:N; auto: cuda if there is one")
    add(
        "--engine",
        default="auto",
        choices=ENGINES,
        help="what computes convolutions; stock is Chainer's own",
    )
    add(
        "--no-graph",
        dest="graph",
        action="store_false",
        help="on a GPU, no CUDA graphs: the same numbers, slower",
    )
    add(
        "--precision",
        default="auto",
        choices=("auto", *PRECISIONS),
        help=f"mixed: half-precision activations; auto: {precision}",
    )
    add(
        "--jobs",
        type=int,
        help="runs side by side; default: one per core on a CPU, one on a GPU; under mpiexec all "
        "ranks work on one",
    )
    add(
        "--threads",
        type=int,
        help="threads of each run on a CPU; default: the cores divided by the jobs",
    )
    add(
        "--time-budget",
        type=float,
        metavar="MINUTES",
        help="stop after so many minutes, with everything saved",
    )
    add(
        "--shards",
        type=int,
        help="parts of a batch, each batch-normalised by itself; default: one for each rank",
    )


class Computing(NamedTuple):
    """What these flags come to: the device, and how many processes of how many threads, None for
    as many as there happen to be elsewhere."""

    device: str
    jobs: int
    threads: int | None


def computing(flags: argparse.Namespace, here: bool = True, now: bool = True) -> Computing:
    """What `add_computing_flags` added, checked.

    Parameters
    ----------
    here : whether runs are computed on this machine.
    now : whether they are computed at all, and not planned for other machines.

    Raises
    ------
    UserError
        for a number that is too small, or a device that is not there.
    """
    device = _device(flags.device, here)
    for flag in ("jobs", "threads", "shards"):
        at_least(1, flag, getattr(flags, flag))
    if flags.time_budget is not None and not flags.time_budget > 0:
        raise UserError(
            f"--time-budget {flags.time_budget:g}: expected a positive number of minutes"
        )
    cores = usable_cores()
    jobs = flags.jobs or (cores if device == "cpu" else 1)
    if not here:
        return Computing(device, jobs, flags.threads)
    if device == "cpu" and now:
        jobs = min(jobs, max(1, cores // (flags.threads or 1)))
    return Computing(device, jobs, min(flags.threads or max(1, cores // jobs), cores))


def _checked(flags: argparse.Namespace, suite: Suite) -> Options:
    at_least(1, "machines", flags.machines)
    device, jobs, threads = computing(flags, flags.cluster is None, flags.machines is None)
    name = flags.preset
    if name == "auto":
        name = "digits" if device == "cpu" else "paper"
    if name not in suite.presets:
        raise UserError(f"--preset {name}: expected auto, {', '.join(suite.presets)}")
    preset = suite.presets[name]
    at_least(1, "trials", flags.trials)
    at_least(0, "seed", flags.seed)
    if flags.machines and not flags.dry_run:
        raise UserError(f"--machines {flags.machines}: expected --dry-run with it")
    if flags.cluster and flags.jobs and not flags.dry_run:
        raise UserError(f"--jobs {flags.jobs}: with --cluster every worker takes one run at a time")
    if flags.fresh and not flags.runs:
        raise UserError("--fresh: it does runs again, --no-runs does none; expected one of them")
    if flags.fewer and flags.runs:
        raise UserError("--fewer: expected --no-runs with it")
    suite.check(flags)
    return Options(
        preset,
        flags.data or preset.default_data,
        flags.trials,
        device,
        flags.engine,
        flags.graph,
        preset.precision if flags.precision == "auto" else flags.precision,
        jobs,
        threads,
        flags.results,
        flags.figures,
        flags.seed,
        flags.time_budget,
        flags.dry_run,
        flags.runs,
        flags.fewer,
        flags.fresh,
        flags.shards,
        flags.cluster,
        flags.machines,
        flags.resnet50_weights,
        flags,
    )


def at_least(least: int, flag: str, value: int | None) -> None:
    """Raises UserError if the value that was given for a flag is smaller."""
    if value is not None and value < least:
        raise UserError(f"--{flag} {value}: expected at least {least}")


def _device(name: str, here: bool) -> str:
    """``cpu``, or ``cuda:N`` for a GPU that is there, if it is to be on this machine."""
    if name == "cpu" or (name == "auto" and not chainer.backends.cuda.available):
        reason = _compat.why_no_gpu() if name == "auto" else None
        if reason:
            _logger.warning("device cpu, though there is an NVIDIA driver: %s", reason)
        return "cpu"
    kind, _, number = ("cuda" if name == "auto" else name).partition(":")
    if kind != "cuda" or not (number.isdigit() or not number):
        raise UserError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    if not here:
        return f"cuda:{number or 0}"
    if not chainer.backends.cuda.available:
        reason = _compat.why_no_gpu() or "there is no NVIDIA driver"
        raise UserError(f"--device {name}: no CUDA GPU that CuPy can use ({reason})")
    count = chainer.backends.cuda.cupy.cuda.runtime.getDeviceCount()
    if int(number or 0) >= count:
        raise UserError(f"--device {name}: expected cuda:0 to cuda:{count - 1}")
    return f"cuda:{number or 0}"
