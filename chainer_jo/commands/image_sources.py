"""Image sources of the scripts: presets, flags, location of the data, and the study of them."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from chainer_jo.command_line import at_least
from chainer_jo.cores import usable_cores
from chainer_jo.data import clothing1m, clothing1m_standin
from chainer_jo.data.array_cache import made_once
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.data.source import Source, find
from chainer_jo.errors import UserError
from chainer_jo.runs.presets import (
    CLOTHING1M_PRESETS,
    CLOTHING1M_STANDIN,
    PRESETS,
    Preset,
    Study,
    pretrained,
)
from chainer_jo.runs.pseudo import PseudoSource


@dataclass(frozen=True)
class OnDisk:
    """A `Source` whose images stay on disk."""

    name: str
    load: Callable[[], LabelledData]


class ImageSource(Protocol):
    """The images of a family of scripts. ``add`` is argparse's ``add_argument``; ``find``,
    ``fields`` (of `Study`) and ``settings`` (of `chainer_jo.runs.run.Settings`) are given
    the checked flags. ``check``, ``find`` and ``fields`` raise UserError."""

    presets: dict[str, Preset]
    data_help: str
    weights_help: str

    def add_flags(self, add: Callable[..., Any]) -> None: ...
    def check(self, flags: argparse.Namespace) -> None: ...
    def find(self, flags: argparse.Namespace) -> Source | OnDisk: ...
    def fields(self, flags: argparse.Namespace, source: Source | OnDisk) -> dict[str, Any]: ...
    def settings(self, flags: argparse.Namespace) -> dict[str, Any]: ...


def study_of(flags: argparse.Namespace, images: ImageSource, source: Source | OnDisk) -> Study:
    """The study that the flags ask for. Raises UserError for a file that cannot be read."""
    given = {name: getattr(flags, name) for name in ("preset", "trials", "seed", "precision")}
    return Study(**{**given, "data": source.name, **images.fields(flags, source)})


class InMemory:
    """CIFAR-10, the digits, or other images that fit in memory: all scripts but Clothing1M's."""

    presets = PRESETS
    data_help = (
        "digits, cifar10, the official CIFAR-10 archive or its folder, or a folder or tar of "
        "images in train/<class> and test/<class>"
    )
    weights_help = "for pseudo labels"

    def add_flags(self, add: Callable[..., Any]) -> None:
        add(
            "--noise-rates",
            type=float,
            nargs="+",
            metavar="RATE",
            help="only these, in [0, 1], in Tables 1 and 2 and Figures 2 and 3, the others' are "
            "fixed; default: the paper's",
        )
        add(
            "--features",
            type=os.path.abspath,
            metavar="NPZ",
            help="features of the training images, for pseudo labels",
        )

    def check(self, flags: argparse.Namespace) -> None:
        for rate in flags.noise_rates or ():
            if not 0 <= rate <= 1:
                raise UserError(f"--noise-rates {rate:g}: expected numbers in [0, 1]")

    def find(self, flags: argparse.Namespace) -> Source:
        return find(flags.data)

    def fields(self, flags: argparse.Namespace, source: Source | OnDisk) -> dict[str, Any]:
        rates = flags.noise_rates
        return {
            "noise_rates": rates and tuple(dict.fromkeys(rates)),
            "features": self._pseudo(flags).name(source.name),
        }

    def settings(self, flags: argparse.Namespace) -> dict[str, Any]:
        return {"pseudo": self._pseudo(flags)}

    def _pseudo(self, flags: argparse.Namespace) -> PseudoSource:
        device = "@numpy" if flags.device == "cpu" else f"@cupy:{flags.device[5:]}"
        return PseudoSource(flags.features, flags.weights, device)


class Clothing1M:
    """Clothing1M (Section 5.8), whose images stay on disk, or the stand-in for it."""

    presets = CLOTHING1M_PRESETS
    data_help = "the folder of Clothing1M"
    weights_help = "which the preset paper starts from"

    def add_flags(self, add: Callable[..., Any]) -> None:
        add(
            "--classes",
            nargs=2,
            metavar=("FROM", "TO"),
            help="the pair that a figure shows; default: the paper's",
        )
        add("--batch-size", type=int, help="images of a batch; default: the paper's, 32")
        add("--workers", type=int, help="decoding processes of each run")

    def check(self, flags: argparse.Namespace) -> None:
        at_least(1, "batch-size", flags.batch_size)
        at_least(0, "workers", flags.workers)
        if flags.preset.network is None and flags.precision != "fp32":
            raise UserError(
                f"--precision {flags.precision}: ResNet-50 is computed in float32, expected fp32"
            )

    def find(self, flags: argparse.Namespace) -> OnDisk:
        if flags.data == CLOTHING1M_STANDIN:
            name = f"{CLOTHING1M_STANDIN}-{clothing1m_standin.VERSION}"
            folder = made_once(name, clothing1m_standin.write, lambda f: f.resolve(strict=True))
            return OnDisk(flags.data, functools.partial(_load, folder, flags.data))
        if flags.data is None:
            raise UserError(
                "--data: expected the folder of Clothing1M, which its authors give out on "
                "request; --preset digits runs on a stand-in"
            )
        folder = Path(os.path.abspath(os.path.expanduser(flags.data)))
        if not folder.is_dir():
            raise UserError(f"--data {flags.data!r}: no such folder, expected Clothing1M's")
        load = functools.partial(_load, folder)
        return OnDisk(load().name, load)

    def fields(self, flags: argparse.Namespace, source: Source | OnDisk) -> dict[str, Any]:
        preset = flags.preset
        data = source.load()
        assert isinstance(data, LabelledData)  # as `find` says
        preset = replace(
            preset,
            network=preset.network or pretrained(flags.weights),
            train_images=len(data.train),
            batch_size=flags.batch_size or preset.batch_size,
        )
        classes = flags.classes and tuple(flags.classes)
        return {"preset": preset, "load": source.load, "classes": classes}

    def settings(self, flags: argparse.Namespace) -> dict[str, Any]:
        workers = flags.workers
        if workers is None:
            workers = max(1, usable_cores() // flags.jobs - 1)
        return {"weights": flags.weights, "workers": workers}


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _load(folder: Path, name: str | None = None) -> LabelledData:
    return clothing1m.load(folder, name)
