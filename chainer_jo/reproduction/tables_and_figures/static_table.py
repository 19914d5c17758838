"""Tables of settings, which require no run: Tables 4 and 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import chainer
import numpy as np

from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.output import Setting, TableOrFigure, as_csv, grid

#: The number of classes of CIFAR-10, and of the digits.
CLASSES = 10


@dataclass(frozen=True)
class StaticTable(TableOrFigure):
    """A header and rows of text and numbers, written in the same formats as `Table`."""

    number: int
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | float]]

    kind = "table"

    def paragraphs(self, store: RunStore, setting: Setting) -> list[str]:
        """Preset and data set, and the grid."""
        rows = [[f"{x:g}" if isinstance(x, float) else str(x) for x in row] for row in self.rows]
        return [f"Preset {setting.preset}, data {setting.data}.", grid(self.header, rows)]

    def data(self, store: RunStore, setting: Setting) -> dict:
        """Header and rows as they are."""
        return {**self.head(setting, True), "header": self.header, "rows": self.rows}

    def extra_files(self, store: RunStore, setting: Setting) -> dict[str, str]:
        """The rows as CSV."""
        return {".csv": as_csv([self.header, *self.rows])}


def architecture_table(study: Study) -> StaticTable:
    """Table 4 for the preset's network: output shape and parameters of every part, from a forward
    pass."""
    config, shape = study.preset.network, study.preset.image_shape
    if config is None or shape is None:
        raise ValueError(f"preset {study.preset.name}: no network of its own, expected another")
    h, w, c = shape
    net = PreActResNet(c, CLASSES, config.units, config.widths)
    x = chainer.Variable(np.zeros((1, c, h, w), np.float32))
    inputs = f"{h}x{w} image, {c} channel{'s' if c > 1 else ''}"
    rows: list[list[str | float]] = [["input", inputs, _shape(x), 0]]
    parameters: list[int] = []

    def add(name: str, description: str, output: chainer.Variable, *links: chainer.Link) -> None:
        parameters.append(sum(param.size for link in links for param in link.params()))
        rows.append([name, description, _shape(output), parameters[-1]])

    with chainer.using_config("train", False), chainer.no_backprop_mode():
        hidden = net.conv(x)
        add("conv", f"{config.widths[0]} filters 3x3, padding 1, stride 1", hidden, net.conv)
        channels, start = config.widths[0], 0
        for stage, (count, width) in enumerate(zip(config.units, config.widths, strict=True)):
            units = net.stages[start : start + count]
            # As in the paper: a stage whose first unit changes the shape is split into a and b.
            groups = [units] if channels == width else [units[:1], units[1:]]
            for letter, group in zip(
                "ab" if len(groups) > 1 else " ", filter(len, groups), strict=False
            ):
                for unit in group:
                    hidden = unit(hidden)
                plural = "s" if len(group) > 1 else ""
                inside = f"{len(group)} pre-activation residual unit{plural} {channels}→{width}"
                add(f"unit{stage + 1}{letter}".strip(), inside, hidden, *group)
                channels = width
            start += count
        pooled = chainer.functions.mean(net.pool(hidden), axis=(2, 3))
        add("pool", "batch normalisation, ReLU, mean over all pixels", pooled, net.pool)
        logits = net.dense(pooled)
        add("dense", f"fully connected {channels}→{CLASSES}", logits, net.dense)
        add("output", "softmax", chainer.functions.softmax(logits))
    rows.append(["total", "", "", sum(parameters)])
    return StaticTable(
        4,
        f"{tables.TABLE4_CAPTION}; {trained_on(study)}.",
        ("part", "what it is", "output shape", "parameters"),
        rows,
    )


def _shape(x: chainer.Variable) -> str:
    return "×".join(map(str, x.shape[1:]))
