"""The flags of the scripts, read, checked, and resolved where they say ``auto``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from chainer_jo.command_line import Parser, at_least
from chainer_jo.commands.image_sources import ImageSource
from chainer_jo.engine.choice import ENGINES
from chainer_jo.errors import UserError
from chainer_jo.runs.computing_flags import (
    add_computing_flags,
    resolve_computing_flags,
    spare_threads,
)
from chainer_jo.runs.experiment import PRECISIONS


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
