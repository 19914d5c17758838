"""Draws curves with matplotlib, without a display and without its global state."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from chainer_jo.report import figure_style as style
from chainer_jo.report.curves import QUANTITIES, Curve, Series

SIZE = (5.2, 3.7)
"""Inches without the legend: small, so that its letters can be read on a phone."""
LEGEND_ROW = 0.17
"""Inches."""


def plot(
    key: str,
    curves: Sequence[Curve],
    all_series: Sequence[Series],
    drops: Sequence[int],
    footnote: str,
) -> dict[str, bytes]:
    """A figure of curves as ``{".png": ..., ".pdf": ...}``.

    Parameters
    ----------
    key : what it shows, one of `QUANTITIES`.
    all_series : of each of the ``curves``; those without epochs are in the legend alone.
    drops : after which epochs a learning rate is divided.
    footnote : printed under the axes.
    """
    with matplotlib.rc_context(style.RC):
        labels = [
            f"{curve.label} ({series.state})" if series.state else curve.label
            for curve, series in zip(curves, all_series, strict=True)
        ]
        columns = _columns(labels)
        height = SIZE[1] + LEGEND_ROW * math.ceil(len(labels) / columns)
        canvas = Canvas((SIZE[0], height), layout="constrained")
        axes = canvas.add_subplot()
        styles = style.line_styles([curve.family for curve in curves])
        for number, series in enumerate(all_series):
            first_marker = (number + 0.5) / len(all_series)
            _draw(axes, series, styles[number], labels[number], first_marker)
        axes.set_xlabel("epoch")
        axes.set_ylabel(QUANTITIES[key].axis)
        axes.set_xlim(0, max((curve.length for curve in curves), default=1))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.08)
        if key == "cross_entropy":
            axes.set_ylim(bottom=0)
        for drop in drops:
            axes.axvline(drop, color=style.MUTED, linestyle=":", linewidth=1.1, zorder=1)
        if not any(series.trials for series in all_series):
            axes.set_yticks([])
            axes.text(
                0.5, 0.5, "no epochs yet", transform=axes.transAxes,
                ha="center", va="center", fontsize=14, color=style.MUTED,
            )  # fmt: skip
        canvas.legend(loc="outside upper left", ncols=columns, labelcolor=style.INK)
        _write_under(canvas, footnote)
        return images(canvas)


def _draw(axes: Axes, series: Series, look: dict, label: str, first_marker: float) -> None:
    """A line through the means, and a band of one standard deviation where there is one.

    Markers are as far apart on every curve; the first is after the part ``first_marker`` of that,
    so that no curve's markers lie under another's.
    """
    means = [found.mean for found in series.by_epoch]
    epochs = range(1, len(means) + 1)
    every = max(1, round(series.length / style.MARKERS_PER_CURVE))
    marked = (int(first_marker * every), every)
    # Markers at the edge are whole; an empty line, not clipped, counts as one in the page's corner.
    axes.plot(epochs, means, label=label, markevery=marked, clip_on=not epochs, **look)
    spread = [
        (n, found.mean - found.std, found.mean + found.std)
        for n, found in enumerate(series.by_epoch, 1)
        if found.std is not None
    ]
    if spread:
        axes.fill_between(*zip(*spread, strict=True), color=look["color"], alpha=0.18, linewidth=0)


def _columns(labels: Sequence[str]) -> int:
    """How many labels fit side by side above the axes."""
    longest = max(map(len, labels))
    return 3 if longest <= 10 and len(labels) > 2 else 2 if longest <= 26 else 1


def _write_under(canvas: Canvas, text: str) -> None:
    canvas.supxlabel(
        textwrap.fill(text, 104), x=0.01, ha="left", fontsize=7, color=style.MUTED, linespacing=1.3
    )


def images(canvas: Canvas) -> dict[str, bytes]:
    """What is drawn as PNG and PDF; the same drawing always gives the same bytes."""
    made = {}
    for suffix, metadata in ((".png", {"Software": None}), (".pdf", {"CreationDate": None})):
        out = io.BytesIO()
        canvas.savefig(out, format=suffix[1:], metadata=metadata)
        made[suffix] = out.getvalue()
    return made
