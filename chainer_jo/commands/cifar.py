"""The scripts on CIFAR-10, the digits, or other images that fit in memory."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from chainer_jo.commands.suite import Options
from chainer_jo.datasets import source
from chainer_jo.datasets.source import Source
from chainer_jo.errors import UserError
from chainer_jo.experiments.presets import PRESETS, Study
from chainer_jo.experiments.pseudo import PseudoSource


class Cifar:
    """The `Suite` of everything in the paper but Clothing1M (Section 5.8)."""

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
        add("--features", metavar="NPZ", help="features of the training images, for pseudo labels")

    def check(self, flags: argparse.Namespace) -> None:
        for rate in flags.noise_rates or ():
            if not 0 <= rate <= 1:
                raise UserError(f"--noise-rates {rate:g}: expected numbers in [0, 1]")

    def find(self, options: Options) -> Source:
        return source.find(options.data)

    def study(self, options: Options, found: Source) -> Study:
        rates = options.own.noise_rates
        return Study(
            options.preset,
            found.name,
            options.trials,
            options.seed,
            options.precision,
            rates and tuple(dict.fromkeys(rates)),
            self._pseudo(options).name(found.name),
        )

    def settings(self, options: Options) -> dict[str, Any]:
        return {"pseudo": self._pseudo(options)}

    def _pseudo(self, options: Options) -> PseudoSource:
        device = "@numpy" if options.device == "cpu" else f"@cupy:{options.device[5:]}"
        return PseudoSource(options.own.features, options.resnet50_weights, device)
