"""Command line of the scripts: flags are parsed, checked, and resolved if they are ``auto``; the
families of scripts, on images in memory or on Clothing1M."""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from chainer_jo import files
from chainer_jo.command_line import Parser
from chainer_jo.data import cifar10n, clothing1m, clothing1m_standin
from chainer_jo.data.array_cache import cached_folder
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.data.source import find
from chainer_jo.devices import resolve_device, usable_cores
from chainer_jo.engine.interface import ENGINES
from chainer_jo.errors import Limits, UserError
from chainer_jo.method.label_sources import LabelFiles
from chainer_jo.reproduction.experiments.clothing1m_presets import (
    CLOTHING1M_PRESETS,
    CLOTHING1M_STANDIN,
    Clothing1MStudy,
)
from chainer_jo.reproduction.experiments.experiment import PRECISIONS
from chainer_jo.reproduction.experiments.presets import PRESETS, Study, pretrained

#: Default of --jobs on a GPU, until a GPU has measured several runs (docs/gpu.md).
JOBS_ON_A_GPU = 1


def parse(description: str, argv: list[str] | None, family: Family) -> argparse.Namespace:
    """Parses the command line into one field per flag, with defaults and ``auto`` resolved.

    ``dry_run`` is True for a plan, of the run ``run_id`` alone if that is not empty; ``preset`` is
    a `Preset`; ``device`` "cpu" or "cuda:N"; ``threads`` None if the workers of a cluster decide;
    ``runs`` whether to do what is missing; ``deadline``, in the place of a time budget, a value of
    ``time.monotonic()`` or None.

    Raises UserError for an unknown flag, or a value that is not what the flag expects.
    """
    parser = Parser(description=description, allow_abbrev=False)
    add = parser.add_argument
    presets = f"{', '.join(family.presets)}; default: paper with a CUDA GPU, else digits"
    add("--preset", default="auto", help=presets)
    add("--data", help=f"{family.data_help}; default: the preset's")
    add("--trials", type=Limits(int, 1), help="trials of every cell; default: the preset's")
    add("--device", default="auto", help="cpu, cuda or cuda:N; default: cuda if available")
    jobs = f"parallel runs; default: one per core on a CPU, {JOBS_ON_A_GPU} on a GPU"
    add("--jobs", type=Limits(int, 1), help=jobs)
    threads = "threads per run on a CPU; default: cores divided by jobs, 1 for very small networks"
    add("--threads", type=Limits(int, 1), help=threads)
    add(
        "--time-budget",
        type=Limits(float, 0, above=True),
        metavar="MINUTES",
        help="stop after MINUTES with all progress saved, at the end of an epoch (of 2,000 "
        "steps in long epochs)",
    )
    engine = "backend of the convolutions; default: auto; stock: Chainer's own functions"
    add("--engine", default="auto", choices=ENGINES, help=engine)
    graph = "without CUDA graphs on a GPU; same numbers, slower"
    add("--no-graph", dest="graph", action="store_false", help=graph)
    precision = "mixed: float16 or bfloat16 activations; default: mixed for half, else fp32"
    add("--precision", default="auto", choices=("auto", *PRECISIONS), help=precision)
    for name, content in (("results", "runs and tables"), ("figures", "figures")):
        text = f"folder of {content}; default: {name}"
        add(f"--{name}", type=Path, default=Path(name), help=text)
    seed = "seed of the first trial, from which further trials count up; default: 0"
    add("--seed", type=Limits(int, 0), default=0, help=seed)
    weights = f"ImageNet weights of ResNet-50 (npz or safetensors), {family.weights_help}"
    add("--resnet50-weights", dest="weights", type=os.path.abspath, metavar="FILE", help=weights)
    plan = "list runs with state and estimated time only; with an ID, say why it is in its state"
    add("--dry-run", nargs="?", const="", metavar="ID", help=plan)
    no_runs = "write outputs from finished runs only; compute nothing"
    add("--no-runs", dest="runs", action="store_false", help=no_runs)
    fresh = "delete this script's runs and repeat them; without it, unfinished runs resume"
    add("--fresh", action="store_true", help=fresh)
    cluster = "Dask scheduler (address or file) whose workers run; all machines share --results"
    add("--cluster", metavar="ADDRESS", help=cluster)
    family.add_flags(add)
    flags = parser.parse_args(argv)
    _check(flags, family)
    return flags


def _check(flags: argparse.Namespace, family: Family) -> None:
    if flags.cluster and (flags.jobs or flags.threads) and not flags.dry_run:
        raise UserError(
            f"--jobs or --threads with --cluster {flags.cluster}: remove them; each worker has one "
            "run at a time, with its own OMP_NUM_THREADS"
        )
    if flags.fresh and not flags.runs:
        raise UserError("--fresh with --no-runs: expected only one of them")
    flags.run_id, flags.dry_run = flags.dry_run, flags.dry_run is not None
    flags.device = resolve_device(flags.device, flags.cluster is None)
    minutes = flags.time_budget
    flags.deadline = minutes and time.monotonic() + 60 * minutes
    name = flags.preset
    if name == "auto":
        name = "digits" if flags.device == "cpu" else "paper"
    if name not in family.presets:
        raise UserError(f"--preset {name}: expected auto, {', '.join(family.presets)}")
    flags.preset = family.presets[name]
    _share_cores(flags)
    flags.data = flags.data or flags.preset.default_data
    if flags.precision == "auto":
        flags.precision = flags.preset.precision


def _share_cores(flags: argparse.Namespace) -> None:
    """Resolves ``--jobs`` and ``--threads``: as many as the cores, where this machine computes, but
    no more threads than the preset's network can use."""
    cores, given = usable_cores(), flags.threads
    flags.jobs = flags.jobs or (cores if flags.device == "cpu" else JOBS_ON_A_GPU)
    if flags.cluster is not None:
        return
    if flags.device == "cpu":
        flags.jobs = min(flags.jobs, max(1, cores // (given or 1)))
    useful = cores if given else flags.preset.threads or cores
    flags.threads = min(given or max(1, cores // flags.jobs), cores, useful)


class InMemory:
    """CIFAR-10, the digits, or other images that fit in memory: all scripts except Clothing1M's."""

    presets = PRESETS
    data_help = (
        "digits, cifar10, the official CIFAR-10 archive or its folder, or a folder or tar of "
        "images in train/<class> and test/<class>"
    )
    weights_help = "whose features give pseudo labels"

    def add_flags(self, add: Callable[..., Any]) -> None:
        rates = "noise rates, where a script lets them be chosen; default: the paper's"
        add("--noise-rates", type=Limits(float, 0, 1), nargs="+", metavar="RATE", help=rates)
        features = "features of the training images, from which pseudo labels are clustered"
        add("--features", type=os.path.abspath, metavar="NPZ", help=features)

    def resolve(self, flags: argparse.Namespace) -> Resolved:
        """The study that the flags ask for, and the settings of its runs that only this family
        has."""
        source = find(flags.data)
        if flags.weights and flags.preset.image_shape[2] != 3:
            raise UserError(f"--resnet50-weights {flags.weights}: expected images in colour")
        rates = flags.noise_rates and tuple(dict.fromkeys(flags.noise_rates))
        device = "@numpy" if flags.device == "cpu" else f"@cupy:{flags.device[5:]}"
        people = getattr(flags, "labels", None)
        label_files = LabelFiles(flags.features, flags.weights, device, people)
        given = _given(flags, source.name) | {"noise_rates": rates}
        given["features"] = label_files.features_of(source.name)
        study = Study(flags.preset, **given, load=source.load)
        return study, {"label_files": label_files}


class HumanLabels(InMemory):
    """CIFAR-10's official images with the labels of people (CIFAR-10N)."""

    def add_flags(self, add: Callable[..., Any]) -> None:
        super().add_flags(add)
        labels = "CIFAR-10_human.pt, the labels of CIFAR-10N, for the official images"
        add("--labels", type=os.path.abspath, metavar="FILE", help=labels)

    def resolve(self, flags: argparse.Namespace) -> Resolved:
        if flags.labels or flags.runs and not flags.dry_run:
            cifar10n.read(flags.labels or "--labels (not given)")
        return super().resolve(flags)


class Clothing1M:
    """Clothing1M (Section 5.8) or its stand-in; images stay on disk."""

    presets = CLOTHING1M_PRESETS
    data_help = "the folder of Clothing1M"
    weights_help = "with which the preset paper starts"

    def add_flags(self, add: Callable[..., Any]) -> None:
        classes = "pair of classes of a figure; default: the paper's"
        add("--classes", nargs=2, metavar=("FROM", "TO"), help=classes)
        add("--workers", type=Limits(int, 0), help="decoding processes per run")

    def resolve(self, flags: argparse.Namespace) -> Resolved:
        if flags.preset.network is None and flags.precision != "fp32":
            raise UserError(
                f"--precision {flags.precision}: expected fp32, in which ResNet-50 is computed"
            )
        load = self._loader(flags)
        data = load()
        preset = replace(
            flags.preset,
            network=flags.preset.network or pretrained(flags.weights),
            train_images=len(data.train),
        )
        given, classes = _given(flags, data.name), flags.classes and tuple(flags.classes)
        study = Clothing1MStudy(preset, **given, load=load, classes=classes)
        workers = flags.workers
        if workers is None:
            workers = max(1, usable_cores() // flags.jobs - 1)
        return study, {"weights": flags.weights, "workers": workers}

    def _loader(self, flags: argparse.Namespace) -> Callable[[], LabelledData]:
        if flags.data == CLOTHING1M_STANDIN:
            name = f"{CLOTHING1M_STANDIN}-{clothing1m_standin.VERSION}"
            folder = cached_folder(name, clothing1m_standin.write, lambda f: f.resolve(strict=True))
            return functools.partial(_load, folder, flags.data)
        if flags.data is None:
            raise UserError(
                "--data: expected the folder of Clothing1M, which its authors provide on request; "
                "--preset digits runs on a stand-in"
            )
        folder = files.expanded(flags.data)
        if not folder.is_dir():
            raise UserError(f"--data {flags.data!r}: no such folder, expected Clothing1M's")
        return functools.partial(_load, folder)


#: Presets and flags of a family of scripts, and what follows from the flags.
Family = InMemory | Clothing1M
Resolved = tuple[Study, dict[str, Any]]


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _load(folder: Path, name: str | None = None) -> LabelledData:
    return clothing1m.load(folder, name)


def _given(flags: argparse.Namespace, data: str) -> dict[str, Any]:
    """Fields of every `Study` on this data set."""
    return {"data": data, "trials": flags.trials, "seed": flags.seed, "precision": flags.precision}
