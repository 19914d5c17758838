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
from chainer_jo.report.curves import QUANTITIES, Curve, Series, View

SIZE = (5.2, 3.9)
"""Inches without the legend: small, so that its letters can be read on a phone."""
LEGEND_ROW = 0.17
"""Inches."""
FINE = {"fontsize": 8.5, "color": style.MUTED}
"""Notes: as large as they have to be where the figure is 480 pixels wide."""
NOTE_WIDTH = 74
"""Characters."""


def plot(
    key: str,
    curves: Sequence[Curve],
    all_series: Sequence[Series],
    view: View,
    footnote: str,
) -> dict[str, bytes]:
    """A figure of curves as ``{".png": ..., ".pdf": ...}``.

    Parameters
    ----------
    key : what it shows, one of `QUANTITIES`.
    all_series : of each of the ``curves``; those without epochs are in the legend alone.
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
        families = [curve.family for curve in curves]
        looks = style.line_styles(families)
        settled = min(view.marks, default=0) if view.settled else 0
        for number, series in enumerate(all_series):
            first_marker = number / len(all_series)
            _draw(axes, series, looks[number], labels[number], first_marker, settled)
        _draw_thin(axes, view, looks)
        axes.set_xlabel("epoch")
        axes.set_ylabel(QUANTITIES[key].axis)
        axes.set_xlim(0, 1.01 * max((curve.length for curve in curves), default=1))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.1)
        if key == "cross_entropy":
            axes.set_ylim(bottom=0)
        elif lower := [f.mean for s in all_series for f in s.by_epoch[settled // 2 :] if settled]:
            axes.set_ylim(bottom=10 * (min(lower) // 10))
        _mark(axes, view)
        if view.inset and any(series.trials for series in all_series):
            _magnify(axes, view, all_series, looks)
        if not any(series.trials for series in all_series):
            axes.set_yticks([])
            axes.text(
                0.5, 0.5, "no epochs yet", transform=axes.transAxes,
                ha="center", va="center", fontsize=14, color=style.MUTED,
            )  # fmt: skip
        lines = axes.lines[: len(labels)]
        if len(set(families)) == len(families) or not any(families):  # else a family is a column
            lines = [line for column in range(columns) for line in lines[column::columns]]
        canvas.legend(handles=lines, loc="outside upper left", ncols=columns, labelcolor=style.INK)
        note_under(canvas, footnote)
        return images(canvas)


def note_under(canvas: Canvas, text: str) -> None:
    """A note below everything, of a figure that is `SIZE` wide."""
    canvas.supxlabel(textwrap.fill(text, NOTE_WIDTH), x=0.01, ha="left", **FINE)


def _draw(
    axes: Axes, series: Series, look: dict, label: str, first_marker: float, settled: int = 0
) -> None:
    """A line through the means, and after epoch ``settled`` a band of one standard deviation, where
    there is one.

    Markers are as far apart on every curve; the first is after the part ``first_marker`` of that,
    so that no curve's markers lie under another's.
    """
    means = [found.mean for found in series.by_epoch]
    epochs = range(1, len(means) + 1)
    every = max(1, round(series.length / style.MARKERS_PER_CURVE))
    marked = ((every - 1 + int(first_marker * every)) % every, every)
    axes.plot(epochs, means, label=label, markevery=marked, **look)
    spread = [
        (n, found.mean - found.std, found.mean + found.std)
        for n, found in enumerate(series.by_epoch, 1)
        if found.std is not None and n > settled
    ]
    if spread:
        axes.fill_between(*zip(*spread, strict=True), color=look["color"], alpha=0.18, linewidth=0)


def _mark(axes: Axes, view: View) -> None:
    """Dotted lines with what happens there, and above the axes the paper's epochs."""
    for epoch, what in view.marks.items():
        axes.axvline(epoch, color=style.MUTED, linestyle=":", linewidth=1.1, zorder=1)
        across = axes.get_xaxis_transform()
        axes.text(epoch, 0.985, f" {what}", transform=across, va="top", **FINE)
    if view.scale != 1:
        above = axes.secondary_xaxis(
            "top", functions=(lambda epoch: epoch / view.scale, lambda paper: paper * view.scale)
        )
        above.set_xlabel("epoch of the paper's schedule", **FINE)
        above.tick_params(labelsize=FINE["fontsize"], labelcolor=style.MUTED)


def _draw_thin(axes: Axes, view: View, looks: Sequence[dict]) -> None:
    for number, series in view.thin.items():
        look = {"color": looks[number]["color"], "linewidth": 0.9}
        _draw(axes, series, look, "", 0.0, series.length)


def _magnify(axes: Axes, view: View, all_series: Sequence[Series], looks: Sequence[dict]) -> None:
    """The curves that end close to another's, within a twelfth of the axis, in a window of their
    own that is as high as the second half of its epochs asks for."""
    first, last = view.inset
    window = axes.inset_axes(view.place)
    bottom, top = axes.get_ylim()
    ends = {n: s.by_epoch[-1].mean for n, s in enumerate(all_series) if s.epochs}
    near = [
        n for n, end in ends.items()
        if any(abs(end - other) < (top - bottom) / 12 for m, other in ends.items() if m != n)
    ]  # fmt: skip
    for n in near:
        _draw(window, all_series[n], {**looks[n], "marker": ""}, "", 0.0, last)
    _draw_thin(window, view, looks)
    half = (first + last) // 2
    means = [f.mean for n in near for f in all_series[n].by_epoch[half:last]]
    if means:
        room = max(max(means) - min(means), (top - bottom) / 25)
        window.set_ylim(max(min(means) - room, 0), max(means) + room / 2)
    window.set_xlim(first, last)
    window.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    window.tick_params(labelsize=FINE["fontsize"] - 1)
    axes.indicate_inset_zoom(window, edgecolor=style.MUTED, alpha=0.8)


def _columns(labels: Sequence[str]) -> int:
    """How many labels fit side by side above the axes."""
    longest = max(map(len, labels))
    return 3 if longest <= 10 and len(labels) > 2 else 2 if longest <= 26 else 1


def images(canvas: Canvas) -> dict[str, bytes]:
    """What is drawn as PNG and PDF; the same drawing always gives the same bytes."""
    made = {}
    for suffix, metadata in ((".png", {"Software": None}), (".pdf", {"CreationDate": None})):
        out = io.BytesIO()
        canvas.savefig(out, format=suffix[1:], metadata=metadata)
        made[suffix] = out.getvalue()
    return made
