"""The scripts on Clothing1M, whose images stay on disk."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import chainer

from chainer_jo.commands import app
from chainer_jo.commands.options import at_least
from chainer_jo.commands.suite import Options
from chainer_jo.cores import usable_cores
from chainer_jo.datasets import clothing1m, clothing1m_standin
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.datasets.source import Source
from chainer_jo.errors import UserError
from chainer_jo.experiments.clothing1m import PRESETS, STANDIN, Clothing1MStudy


class Clothing1M:
    """The `Suite` of Clothing1M (Section 5.8)."""

    presets = PRESETS
    data_help = "the folder of Clothing1M"
    weights_help = "which the preset paper starts from"

    def add_flags(self, add: Callable[..., Any]) -> None:
        add(
            "--classes",
            nargs=2,
            metavar=("FROM", "TO"),
            help="the pair that a figure shows; default: the paper's",
        )
        add("--batch-size", type=int, help="of the batch of all ranks; default: the paper's, 32")
        add("--workers", type=int, help="decoding processes of each run and rank")

    def check(self, flags: argparse.Namespace) -> None:
        at_least(1, "batch-size", flags.batch_size)
        at_least(0, "workers", flags.workers)

    def find(self, options: Options) -> Source:
        if options.data == STANDIN:
            cache = Path(chainer.dataset.get_dataset_directory("chainer_jo"))
            folder = cache / f"{STANDIN}-{clothing1m_standin.VERSION}"
            return Source(
                STANDIN, functools.partial(_load, clothing1m_standin.write(folder), STANDIN)
            )
        if options.data is None:
            raise UserError(
                "--data: expected the folder of Clothing1M, which its authors give out on "
                "request; --preset digits runs on a stand-in"
            )
        folder = Path(os.path.abspath(os.path.expanduser(options.data)))
        if not folder.is_dir():
            raise UserError(f"--data {options.data!r}: no such folder, expected Clothing1M's")
        load = functools.partial(_load, folder)
        return Source(load().name, load)

    def study(self, options: Options, found: Source) -> Clothing1MStudy:
        preset, own = options.preset, options.own
        return Clothing1MStudy(
            replace(
                preset,
                train_images=len(found.load().train),
                batch_size=own.batch_size or preset.batch_size,
            ),
            found.name,
            found.load,
            options.resnet50_weights,
            options.trials,
            options.seed,
            options.precision,
            own.classes and tuple(own.classes),
        )

    def settings(self, options: Options) -> dict[str, Any]:
        workers = options.own.workers
        if workers is None:
            workers = max(1, usable_cores() // options.jobs - 1)
        return {"weights": options.resnet50_weights, "workers": workers}


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _load(folder: Path, name: str | None = None) -> LabelledData:
    return clothing1m.load(folder, name)


main = functools.partial(app.main, suite=Clothing1M())
