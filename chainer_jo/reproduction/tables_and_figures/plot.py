"""Drawings of curves by matplotlib, without a display and without its global state: legible in
print, in grey, and to colour-blind readers."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from chainer_jo.reproduction.tables_and_figures.curves import LOG_ENTRIES, Inset, Layout, Series

INK = "#222222"
MUTED = "#6b6b6b"
FAINT = "#dddddd"

#: The palette of Okabe and Ito without yellow, which is illegible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (6, 1.6, 1, 1.6)))
MARKERS_PER_CURVE = 6
THIN = 0.9
SECONDARY = "thin: KL divergence (eq. 6)"
"""Legend of the secondary series, in the colours of their curves."""

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a dollar in a name is one
}


def line_styles(families: Sequence[str]) -> list[dict]:
    """Colour, marker and dashes of every curve.

    Members of a family share colour and marker and differ in dashes. A curve with an empty family
    shares nothing.
    """
    styles: list[dict] = []
    seen: dict[str, int] = {}
    members: dict[str, int] = {}
    for number, family in enumerate(families):
        family = family or f"curve {number}"
        index = seen.setdefault(family, len(seen))
        member = members[family] = members.get(family, -1) + 1
        styles.append(
            {
                "color": COLOURS[index % len(COLOURS)],
                "marker": MARKERS[index % len(MARKERS)],
                "linestyle": DASHES[member % len(DASHES)],
                "markerfacecolor": "white" if member else COLOURS[index % len(COLOURS)],
            }
        )
    return styles


SIZE_INCHES = (5.2, 3.9)
"""Width and height without the legend: small, so that letters can be read on a phone."""
LEGEND_ROW_INCHES = 0.17
FINE: dict[str, Any] = {"fontsize": 8.5, "color": MUTED}
"""Style of notes, legible in a figure 480 pixels wide."""
BLANK: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
"""Box under a note, which hides lines behind it."""
MIN_MAGNIFICATION = 1.5
"""Least magnification of an inset."""
NOTE_CHARACTERS = 74
LETTER, NOTE_ROW = 0.015, 0.05
"""Width of a note's character, and height of its line, in fractions of the axes."""


def plot(
    layout: Layout, all_series: Sequence[Series], secondary: Mapping[int, Series], footnote: str
) -> dict[str, bytes]:
    """A figure of curves as ``{".png": ..., ".pdf": ...}``.

    Parameters
    ----------
    all_series : one per curve; a series without epochs appears in the legend only.
    secondary : thin series without markers or bands, by the number of their curve.
    footnote : printed under the axes.
    """
    curves, events = layout.curves, layout.events
    with matplotlib.rc_context(RC):
        labels = [
            f"{curve.label} ({series.state})" if series.state else curve.label
            for curve, series in zip(curves, all_series, strict=True)
        ]
        columns = _columns(labels)
        entries = len(labels) + bool(secondary)
        height = SIZE_INCHES[1] + LEGEND_ROW_INCHES * (1 + math.ceil(entries / columns))
        canvas = Canvas((SIZE_INCHES[0], height), layout="constrained")
        axes = canvas.add_subplot()
        families = [curve.family for curve in curves]
        styles = line_styles(families)
        focus = min(events, default=0) if layout.focus_after_line else 0
        for number, series in enumerate(all_series):
            first_marker = number / len(all_series)
            _draw(axes, series, styles[number], labels[number], first_marker, focus)
        _draw_secondary(axes, secondary, styles)
        axes.set_xlabel("epoch")
        axes.set_ylabel(LOG_ENTRIES[layout.key].axis)
        axes.set_xlim(0, 1.01 * max((curve.length for curve in curves), default=1))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.margins(y=0.1)
        if layout.key == "cross_entropy":
            axes.set_ylim(bottom=0)
        elif lower := [t.mean for s in all_series for t in s.by_epoch[focus // 2 :] if focus]:
            axes.set_ylim(bottom=10 * (min(lower) // 10))
        _draw_vertical_lines(axes, events, layout.time_scale)
        if any(series.trials for series in all_series):
            if layout.inset:
                _magnify(axes, layout.inset, all_series, secondary, styles)
        else:
            axes.set_yticks([])
            axes.text(
                0.5, 0.5, "no epochs yet", transform=axes.transAxes,
                ha="center", va="center", fontsize=14, color=MUTED,
            )  # fmt: skip
        lines = axes.lines[: len(labels)]
        if len(set(families)) == len(families) or not any(families):  # else a family is a column
            lines = [line for column in range(columns) for line in lines[column::columns]]
        if secondary:
            lines.append(Line2D([], [], label=SECONDARY, color=MUTED, linewidth=THIN))
        canvas.legend(
            handles=lines, loc="outside upper left", ncols=columns, labelcolor=INK,
            title=layout.title, title_fontproperties={"weight": "bold"}, alignment="left",
        )  # fmt: skip
        note_under(canvas, footnote)
        return png_and_pdf(canvas)


def note_under(canvas: Canvas, text: str) -> None:
    """A note below everything, of a figure that is `SIZE_INCHES` wide."""
    text = textwrap.fill(text, NOTE_CHARACTERS)
    canvas.supxlabel(text, x=0.01, ha="left", **FINE)


def _draw(
    axes: Axes, series: Series, line_style: dict, label: str, first_marker: float, focus: int = 0
) -> None:
    """Draws the means, and after epoch ``focus`` a band of one standard deviation, if any.

    Markers are equally spaced on every curve. The first marker is at the fraction ``first_marker``
    of the spacing, so that the markers of different curves do not overlap.
    """
    means = [trials.mean for trials in series.by_epoch]
    epochs = range(1, len(means) + 1)
    every = max(1, round(series.length / MARKERS_PER_CURVE))
    marked = ((every - 1 + int(first_marker * every)) % every, every)
    axes.plot(epochs, means, label=label, markevery=marked, **line_style)
    spread = [
        (n, trials.mean - trials.std, trials.mean + trials.std)
        for n, trials in enumerate(series.by_epoch, 1)
        if trials.std is not None and n > focus
    ]
    if spread:
        n, lower, upper = zip(*spread, strict=True)
        axes.fill_between(n, lower, upper, color=line_style["color"], alpha=0.18, linewidth=0)


def _draw_vertical_lines(axes: Axes, events: Mapping[int, str], scale: float) -> None:
    """Draws events as dotted lines, and above the axes the epochs of the paper's schedule."""
    row, rows, end = 0, 0, 0.0
    for epoch, event in events.items():
        axes.axvline(epoch, color=MUTED, linestyle=":", linewidth=1.1, zorder=1)
        across = axes.get_xaxis_transform()
        row = row + 1 if epoch < end else 0  # below a note that reaches as far as here
        rows = max(row, rows)
        end = epoch + LETTER * len(event) * axes.get_xlim()[1]
        height = 0.985 - NOTE_ROW * row
        axes.text(epoch, height, f" {event}", transform=across, va="top", bbox=BLANK, **FINE)
    if rows:
        bottom, top = axes.get_ylim()
        axes.set_ylim(top=top + 2 * NOTE_ROW * rows * (top - bottom))
    if scale != 1:
        above = axes.secondary_xaxis(
            "top",
            functions=(lambda epoch: np.divide(epoch, scale), lambda e: np.multiply(e, scale)),
        )
        above.set_xlabel("epoch of the paper's schedule", **FINE)
        above.tick_params(labelsize=FINE["fontsize"], labelcolor=MUTED)


def _draw_secondary(axes: Axes, secondary: Mapping[int, Series], styles: Sequence[dict]) -> None:
    for number, series in secondary.items():
        line_style = {"color": styles[number]["color"], "linewidth": THIN}
        _draw(axes, series, line_style, "", 0.0, series.length)


def _magnify(
    axes: Axes,
    inset: Inset,
    all_series: Sequence[Series],
    secondary: Mapping[int, Series],
    styles: Sequence[dict],
) -> None:
    """Draws an inset of the curves whose ends are within a twelfth of the axis of each other. Its
    height follows the second half of its epochs; no inset if it would hardly magnify."""
    first, last, place = inset
    bottom, top = axes.get_ylim()
    ends = {n: s.by_epoch[-1].mean for n, s in enumerate(all_series) if s.epochs}
    near = [
        n for n, end in ends.items()
        if any(abs(end - other) < (top - bottom) / 12 for m, other in ends.items() if m != n)
    ]  # fmt: skip
    half = (first + last) // 2
    means = [f.mean for n in near for f in all_series[n].by_epoch[half:last]]
    if not means:
        return
    room = max(max(means) - min(means), (top - bottom) / 25)
    low, high = max(min(means) - room, 0), max(means) + room / 2
    if place[-1] * (top - bottom) / (high - low) < MIN_MAGNIFICATION:
        return
    window = axes.inset_axes(place)
    for n in near:
        _draw(window, all_series[n], {**styles[n], "marker": ""}, "", 0.0, last)
    _draw_secondary(window, secondary, styles)
    window.set_xlim(first, last)
    window.set_ylim(low, high)
    window.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    window.tick_params(labelsize=FINE["fontsize"] - 1)
    axes.indicate_inset_zoom(window, edgecolor=MUTED, alpha=0.8)


def _columns(labels: Sequence[str]) -> int:
    """The number of labels that fit side by side above the axes."""
    longest = max(map(len, labels))
    return 3 if longest <= 10 and len(labels) > 2 else 2 if longest <= 26 else 1


def png_and_pdf(canvas: Canvas) -> dict[str, bytes]:
    """A drawing as PNG and PDF; bytes are deterministic. The PDF has no date, but matplotlib reads
    SOURCE_DATE_EPOCH for it, which may be empty or no number."""
    made = {}
    epoch = os.environ.pop("SOURCE_DATE_EPOCH", None)
    try:
        for suffix, metadata in ((".png", {"Software": None}), (".pdf", {"CreationDate": None})):
            out = io.BytesIO()
            canvas.savefig(out, format=suffix[1:], metadata=metadata)
            made[suffix] = out.getvalue()
    finally:
        if epoch is not None:
            os.environ["SOURCE_DATE_EPOCH"] = epoch
    return made
