"""The flags of the scripts, read, checked, and resolved where they say ``auto``."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chainer

from chainer_jo import _compat
from chainer_jo.command_line import Parser, at_least
from chainer_jo.commands.image_sources import ImageSource
from chainer_jo.cores import usable_cores
from chainer_jo.engine.choice import ENGINES
from chainer_jo.errors import UserError
from chainer_jo.runs.experiment import PRECISIONS
from chainer_jo.runs.presets import Preset

_logger = logging.getLogger(__name__)


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Adds the default to the help of flags that take a value and have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or isinstance(action.default, bool):
            return action.help
        return super()._get_help_string(action)


def parse(description: str, argv: list[str] | None, images: ImageSource) -> argparse.Namespace:
    """Reads the command line: a field for each flag, with what ``auto`` and defaults stand for.

    ``preset`` is a `Preset`; ``device`` "cpu" or "cuda:N"; ``threads`` None if the workers of a
    cluster decide; ``runs`` whether to do what is missing; ``deadline``, in the place of a time
    budget, a value of ``time.monotonic()`` or None.

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
        help=f"{', '.join(images.presets)}; auto: paper with a CUDA GPU, else digits",
    )
    add("--data", help=f"{images.data_help}; default: the preset's")
    add("--trials", type=int, help="trials of every cell; default: the preset's")
    add_computing_flags(add)
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
        help="mixed: half-precision activations; auto: fp32, but for the preset half mixed",
    )
    add("--results", type=Path, default=Path("results"), help="folder for runs and tables")
    add("--figures", type=Path, default=Path("figures"), help="folder for figures")
    add("--seed", type=int, default=0, help="seed of the first trial; the next one's is one more")
    add(
        "--resnet50-weights",
        dest="weights",
        type=os.path.abspath,
        metavar="FILE",
        help=f"ImageNet ResNet-50, npz or safetensors, {images.weights_help}",
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
        help="with --dry-run: the time on N machines, --jobs runs on each",
    )
    images.add_flags(add)
    flags = parser.parse_args(argv)
    _check(flags, images)
    return flags


def add_computing_flags(add: Callable[..., Any]) -> None:
    """Where and how long to compute; ``add`` is argparse's."""
    add("--device", default="auto", help="cpu, cuda or cuda:N; auto: cuda if there is one")
    add(
        "--jobs",
        type=int,
        help="runs side by side; default: one per core on a CPU, one on a GPU",
    )
    add(
        "--threads",
        type=int,
        help="threads of each run on a CPU; default: the cores divided by the jobs, for networks "
        "as small as that of digits one",
    )
    add(
        "--time-budget",
        type=float,
        metavar="MINUTES",
        help="once MINUTES have gone by, stop at the end of an epoch (in long ones every 2,000 "
        "steps) with everything saved",
    )


def resolve_computing_flags(flags: argparse.Namespace, here: bool = True, now: bool = True) -> None:
    """Checks what `add_computing_flags` added, and puts values in the place of defaults;
    ``deadline`` and ``threads_given`` are new.

    Parameters
    ----------
    here : whether runs are computed on this machine.
    now : whether they are computed at all, and not planned for other machines.

    Raises
    ------
    UserError
        for a number that is too small, or a device that is not there.
    """
    budget = flags.time_budget
    flags.device = _device(flags.device, here)
    at_least(1, "jobs", flags.jobs)
    at_least(1, "threads", flags.threads)
    if budget is not None and not budget > 0:
        raise UserError(f"--time-budget {budget:g}: expected a positive number of minutes")
    flags.deadline = None if budget is None else time.monotonic() + 60 * budget
    flags.threads_given = flags.threads is not None
    cores = usable_cores()
    flags.jobs = flags.jobs or (cores if flags.device == "cpu" else 1)
    if not here:
        return
    if flags.device == "cpu" and now:
        flags.jobs = min(flags.jobs, max(1, cores // (flags.threads or 1)))
    flags.threads = min(flags.threads or max(1, cores // flags.jobs), cores)


def spare_threads(flags: argparse.Namespace, preset: Preset) -> None:
    """Leaves a run no more threads than a small network has use for, unless ``--threads`` says
    how many."""
    if flags.threads and not flags.threads_given and preset.threads:
        flags.threads = min(flags.threads, preset.threads)


def _check(flags: argparse.Namespace, images: ImageSource) -> None:
    at_least(1, "machines", flags.machines)
    at_least(1, "trials", flags.trials)
    at_least(0, "seed", flags.seed)
    if flags.machines and not flags.dry_run:
        raise UserError(f"--machines {flags.machines}: expected --dry-run with it")
    if flags.cluster and flags.jobs and not flags.dry_run:
        raise UserError(f"--jobs {flags.jobs}: with --cluster every worker takes one run at a time")
    if flags.fresh and not flags.runs:
        raise UserError("--fresh: it does runs again, --no-runs does none; expected one of them")
    resolve_computing_flags(flags, flags.cluster is None, flags.machines is None)
    name = flags.preset
    if name == "auto":
        name = "digits" if flags.device == "cpu" else "paper"
    if name not in images.presets:
        raise UserError(f"--preset {name}: expected auto, {', '.join(images.presets)}")
    flags.preset = images.presets[name]
    spare_threads(flags, flags.preset)
    flags.data = flags.data or flags.preset.default_data
    if flags.precision == "auto":
        flags.precision = flags.preset.precision
    images.check(flags)


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
