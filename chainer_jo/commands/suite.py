"""What the flags say, and what a family of scripts has of its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from chainer_jo.datasets.source import Source
from chainer_jo.experiments.clothing1m import Clothing1MPreset, Clothing1MStudy
from chainer_jo.experiments.presets import Preset, Study

AnyPreset = Preset | Clothing1MPreset
AnyStudy = Study | Clothing1MStudy


@dataclass(frozen=True)
class Options:
    """The flags, checked and with their defaults resolved; `chainer_jo.commands.options.parse` says
    what each one means. ``own`` has those of the suite."""

    preset: AnyPreset
    data: str | None
    trials: int | None
    device: str
    engine: str
    graph: bool
    precision: str
    jobs: int
    threads: int | None  # None: whatever the workers of a cluster have
    results: Path
    figures: Path
    seed: int
    time_budget: float | None
    dry_run: bool
    runs: bool  # whether to do what is missing
    fewer: bool
    fresh: bool
    shards: int | None
    cluster: str | None
    machines: int | None
    resnet50_weights: str | None
    own: argparse.Namespace


class Suite(Protocol):
    """A family of scripts: presets by name, flags of its own (``add`` is argparse's
    ``add_argument``), its data set, the experiments on it, and what only its runs need of
    `chainer_jo.experiments.run.Settings`. ``check`` and ``find`` raise UserError."""

    presets: Mapping[str, AnyPreset]
    data_help: str
    weights_help: str

    def add_flags(self, add: Callable[..., Any]) -> None: ...
    def check(self, flags: argparse.Namespace) -> None: ...
    def find(self, options: Options) -> Source: ...
    def study(self, options: Options, found: Source) -> AnyStudy: ...
    def settings(self, options: Options) -> dict[str, Any]: ...
