"""Flags of every command that trains: device, jobs, threads, time budget."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from chainer_jo.command_line import at_least
from chainer_jo.cores import usable_cores
from chainer_jo.devices import resolve_device
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.presets import Preset

#: Default of --jobs on a GPU, until a GPU has measured several runs (docs/gpu.md).
JOBS_ON_A_GPU = 1


def add_computing_flags(add: Callable[..., Any]) -> None:
    """Adds the flags of device, jobs, threads and time budget; ``add`` is `add_argument`."""
    add("--device", default="auto", help="cpu, cuda or cuda:N; auto: cuda if available")
    add(
        "--jobs",
        type=int,
        help="parallel runs; default: one per core on a CPU, "
        f"{JOBS_ON_A_GPU} on a GPU, where runs share a process",
    )
    add(
        "--threads",
        type=int,
        help="threads per run on a CPU; default: cores divided by jobs, but 1 for very small "
        "networks",
    )
    add(
        "--time-budget",
        type=float,
        metavar="MINUTES",
        help="stop after MINUTES with all progress saved, at the end of an epoch (in long epochs "
        "after a multiple of 2,000 steps)",
    )


def resolve_computing_flags(flags: argparse.Namespace, here: bool = True, now: bool = True) -> None:
    """Checks the flags of `add_computing_flags` and resolves their defaults; adds the fields
    ``deadline`` and ``threads_given``.

    Parameters
    ----------
    here : True if runs are computed on this machine.
    now : True if they are computed, not planned for other machines.

    Raises UserError for a number that is too small, or a device that does not exist.
    """
    budget = flags.time_budget
    flags.device = resolve_device(flags.device, here)
    at_least(1, "jobs", flags.jobs)
    at_least(1, "threads", flags.threads)
    if budget is not None and not budget > 0:
        raise UserError(f"--time-budget {budget:g}: expected a positive number of minutes")
    flags.deadline = None if budget is None else time.monotonic() + 60 * budget
    flags.threads_given = flags.threads is not None
    cores = usable_cores()
    flags.jobs = flags.jobs or (cores if flags.device == "cpu" else JOBS_ON_A_GPU)
    if not here:
        return
    if flags.device == "cpu" and now:
        flags.jobs = min(flags.jobs, max(1, cores // (flags.threads or 1)))
    flags.threads = min(flags.threads or max(1, cores // flags.jobs), cores)


def spare_threads(flags: argparse.Namespace, preset: Preset) -> None:
    """Limits the threads of a run to the number that its network can use, unless ``--threads`` is
    given."""
    if flags.threads and not flags.threads_given and preset.threads:
        flags.threads = min(flags.threads, preset.threads)
