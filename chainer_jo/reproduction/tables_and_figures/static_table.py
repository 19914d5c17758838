"""Tables of settings, which require no run: Tables 4 and 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from chainer_jo.reproduction.experiments.experiment import Network
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.tables_and_figures.output import Results, TableOrFigure, as_csv, grid
from chainer_jo.text import counted

#: The number of classes of CIFAR-10, and of the digits.
CLASSES = 10
Rows = Sequence[Sequence[str | float]]


@dataclass(frozen=True)
class StaticTable(TableOrFigure):
    """A header and rows of text and numbers, which ``make_rows`` gives when they are shown; written
    in the formats of `table.Table`."""

    number: int
    caption: str
    header: Sequence[str]
    make_rows: Callable[[], Rows]

    kind = "table"

    @cached_property
    def rows(self) -> Rows:
        return self.make_rows()

    def paragraphs(self, results: Results) -> list[str]:
        """Preset and data set, and the grid."""
        rows = [[f"{x:g}" if isinstance(x, float) else str(x) for x in row] for row in self.rows]
        return [f"Preset {results.preset}, data {results.data}.", grid(self.header, rows)]

    def data(self, results: Results) -> dict:
        """Header and rows as they are."""
        return {**self.head(results, True), "header": self.header, "rows": self.rows}

    def extra_files(self, results: Results) -> dict[str, str]:
        """The rows as CSV."""
        return {".csv": as_csv([self.header, *self.rows])}


def architecture_table(study: Study) -> StaticTable:
    """Table 4 for the preset's network: output shape and parameters of every part, from a forward
    pass."""
    config, shape = study.preset.network, study.preset.image_shape
    if config is None or shape is None:
        raise ValueError(f"preset {study.preset.name}: no network of its own, expected another")
    return StaticTable(
        4,
        f"{tables.TABLE4_CAPTION}; {trained_on(study)}.",
        ("part", "what it is", "output shape", "parameters"),
        partial(_parts, config, shape),
    )


def _parts(config: Network, shape: tuple[int, int, int]) -> Rows:
    """Part, description, output shape and parameters of each part of a network for such images."""
    import chainer  # a second, which scripts that only list runs do without

    from chainer_jo.method.preact_resnet import PreActResNet

    h, w, c = shape
    net = PreActResNet(c, CLASSES, config.units, config.widths)
    channels, units = config.widths[0], iter(net.stages)
    parts: list[tuple[str, str, list[Callable]]] = [
        ("conv", f"{channels} filters 3x3, padding 1, stride 1", [net.conv])
    ]
    for stage, (count, width) in enumerate(zip(config.units, config.widths, strict=True), 1):
        # As in the paper: a stage whose first unit changes the shape is split into a and b.
        sizes = {"": count} if channels == width else {"a": 1, "b": count - 1}
        for letter, size in sizes.items():
            if size:
                inside = f"{counted(size, 'pre-activation residual unit')} {channels}→{width}"
                parts.append((f"unit{stage}{letter}", inside, [next(units) for _ in range(size)]))
            channels = width
    mean = partial(chainer.functions.mean, axis=(2, 3))
    parts += [
        ("pool", "batch normalisation, ReLU, mean over all pixels", [net.pool, mean]),
        ("dense", f"fully connected {channels}→{CLASSES}", [net.dense]),
        ("output", "softmax", [chainer.functions.softmax]),
    ]
    x = chainer.Variable(np.zeros((1, c, h, w), np.float32))
    inputs = f"{h}x{w} image, {counted(c, 'channel')}"
    rows: list[list[str | float]] = [["input", inputs, _shape(x), 0]]
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for name, description, layers in parts:
            for layer in layers:
                x = layer(x)
            links = [layer for layer in layers if isinstance(layer, chainer.Link)]
            parameters = sum(param.size for link in links for param in link.params())
            rows.append([name, description, _shape(x), parameters])
    return [*rows, ["total", "", "", net.count_params()]]


def _shape(x: Any) -> str:
    return "×".join(map(str, x.shape[1:]))
