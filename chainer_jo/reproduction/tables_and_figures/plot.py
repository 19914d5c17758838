"""Drawings of curves by matplotlib, without a display and without its global state: legible in
print, in grey, and to colour-blind readers."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from chainer_jo.reproduction.tables_and_figures.curves import LOG_ENTRIES, Series, events_of

INK = "#222222"
MUTED = "#6b6b6b"
FAINT = "#dddddd"

#: The palette of Okabe and Ito without yellow, which is illegible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (6, 1.6, 1, 1.6)))
MARKERS_PER_CURVE = 6
#: Dotted vertical lines of events, by their text; dashed horizontal lines; a trial's own line.
EVENTS: dict[str, dict[str, Any]] = {
    "lr/10": {"linestyle": ":", "linewidth": 1.2, "color": MUTED},
    "updates start": {"linestyle": "-.", "linewidth": 0.9, "color": MUTED},
}
LEVEL: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.0}
TRIAL: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.45}

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
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.2,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a dollar in a name is one
}


WIDTH_INCHES = 5.2
"""Small, so that letters can be read on a phone."""
LEGEND_ROW_INCHES = 0.17
FINE: dict[str, Any] = {"fontsize": 8.5, "color": MUTED}
"""Style of notes, legible in a figure 480 pixels wide."""
TITLE_CHARACTERS, NOTE_CHARACTERS = 62, 74
NEAR = 5.0
"""Points of accuracy: curves whose ends are this close to the highest end are magnified."""


class _Panel(NamedTuple):
    """Axes with series, by the numbers of their curves. ``scale``: "linear", "log", or "top" for
    the highest curves; ``quantity`` is one of `LOG_ENTRIES`."""

    series: Mapping[int, Series]
    quantity: str
    scale: str = "linear"
    title: str = ""


def line_styles(curves: Mapping[str, str]) -> dict[str, dict]:
    """Colour, marker and dashes of every curve, by its name; ``curves`` has their families. Members
    of a family share colour and marker and differ in dashes. A curve with an empty family shares
    nothing."""
    families = [family or name for name, family in curves.items()]
    order, styles = list(dict.fromkeys(families)), {}
    for number, (name, family) in enumerate(zip(curves, families, strict=True)):
        index, member = order.index(family), families[:number].count(family)
        colour = COLOURS[index % len(COLOURS)]
        styles[name] = {
            "color": colour,
            "marker": MARKERS[index % len(MARKERS)],
            "linestyle": DASHES[member % len(DASHES)],
            "markerfacecolor": "white" if member else colour,
        }
    return styles


def plot(
    title: str,
    key: str,
    all_series: Sequence[Series],
    divergences: Mapping[int, Series],
    footnote: str,
    *,
    time_scale: float = 1.0,
    moving_means: bool = False,
    limits: Sequence[float] = (),
    levels: str = "",
) -> dict[str, bytes]:
    """A figure of curves as ``{".png": ..., ".pdf": ...}``: means over trials, and thin lines of
    the trials.

    Losses have a second panel with a logarithmic axis and a third with the KL divergence, label
    accuracies a second one of the highest curves.

    Parameters
    ----------
    key : one of `curves.LOG_ENTRIES`.
    all_series : one per curve; a series without epochs appears in the legend only.
    divergences : the KL divergence of soft labels, by the number of their curve.
    time_scale : epochs per epoch of the paper's schedule.
    moving_means : whether a single trial has the means over a twentieth of the epochs, too.
    limits : numbers that the vertical axis of every figure of this kind contains.
    levels : legend of the curves' dashed lines.
    """
    curves = [series.curve for series in all_series]
    events, length = events_of(curves), max(curve.length for curve in curves)
    single = all(len(series.trials) <= 1 for series in all_series)
    moving = max(1, length // 20) if moving_means and single else 1
    if moving > 1:
        footnote += f" Thick lines: moving means over {moving} epochs."
    panels = _panels(key, all_series, divergences)
    heights = [2.7, *[2.1] * (len(panels) - 1)] if len(panels) > 1 else [3.4]  # inches
    styles = line_styles({curve.name: curve.family for curve in curves})
    lines: dict[str, Line2D] = {}
    with matplotlib.rc_context(RC):
        canvas = Canvas(layout="constrained")
        rows = canvas.subplots(len(panels), squeeze=False, sharex=True, height_ratios=heights)[:, 0]
        for panel, axes in zip(panels, rows, strict=True):
            axes.set_title(panel.title, loc="left", fontsize=9)
            axes.set_ylabel(LOG_ENTRIES[panel.quantity].axis)
            for place, series in enumerate(panel.series.values()):
                curve, first_marker = series.curve, place / len(panel.series)
                line = _draw(axes, series, styles[curve.name], first_marker, moving)
                lines.setdefault(
                    f"{curve.label} ({series.state})" if series.state else curve.name, line
                )
                if panel.scale == "linear":
                    for level, end in curve.levels.items():
                        axes.hlines(level, 0, end, colors=line.get_color(), **LEVEL)
            _set_limits(axes, panel, limits)
            for event in events:
                axes.axvline(event.epoch, zorder=1, **EVENTS[event.text])
        axes.set_xlabel("epoch")
        axes.set_xlim(0, 1.01 * length)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if time_scale != 1:
            _draw_paper_axis(rows[0], time_scale)
        further = {event.text: EVENTS[event.text] for event in events}
        if any(curve.levels for curve in curves):
            further[levels] = {"color": MUTED, **LEVEL}
        lines |= {name: Line2D([], [], **style) for name, style in further.items()}
        title = textwrap.fill(title.replace(" = ", "\xa0=\xa0"), TITLE_CHARACTERS)
        columns, pairs = _columns([*lines]), [*lines.items()]
        if len({curve.family for curve in curves} - {""}) in (0, len(curves)):  # else a column each
            pairs = [pair for column in range(columns) for pair in pairs[column::columns]]
        entries = title.count("\n") + 1 + math.ceil(len(pairs) / columns)
        canvas.set_size_inches(WIDTH_INCHES, sum(heights) + 0.6 + LEGEND_ROW_INCHES * entries)
        names, handles = zip(*pairs, strict=True)
        canvas.legend(
            handles, names, loc="outside upper left", ncols=columns, labelcolor=INK, title=title,
            title_fontproperties={"weight": "bold"}, alignment="left",
        )  # fmt: skip
        note_under(canvas, footnote)
        return png_and_pdf(canvas)


def note_under(canvas: Canvas, text: str) -> None:
    """A note below everything, of a figure that is `WIDTH_INCHES` wide."""
    text = textwrap.fill(text.replace(" = ", "\xa0=\xa0"), NOTE_CHARACTERS)
    canvas.supxlabel(text, x=0.01, ha="left", **FINE)


def _panels(
    key: str, all_series: Sequence[Series], divergences: Mapping[int, Series]
) -> list[_Panel]:
    everything = dict(enumerate(all_series))
    panels = [
        _Panel({n: s for n, s in everything.items() if s.curve.panel == name}, key, title=name)
        for name in dict.fromkeys(series.curve.panel for series in all_series)
    ]
    ends = {n: s.by_epoch[-1].mean for n, s in everything.items() if s.epochs}
    if key == "cross_entropy" and ends:
        panels.append(_Panel(everything, key, "log"))
    if any(series.epochs for series in divergences.values()):
        panels.append(_Panel(divergences, "classification", "log"))
    near = {n: everything[n] for n, end in ends.items() if end > max(ends.values()) - NEAR}
    if key == "recovery" and 1 < len(near) < len(ends):
        panels.append(_Panel(near, key, "top"))
    return panels


def _draw(axes: Axes, series: Series, style: dict, first_marker: float, moving: int) -> Line2D:
    """Draws the means, or moving means over so many epochs, and thin lines of the trials.

    Markers are equally spaced on every curve. The first marker is at the fraction ``first_marker``
    of the spacing, so that the markers of different curves do not overlap.
    """
    if len(series.trials) > 1 or moving > 1:
        for values in series.trials.values():
            axes.plot(range(1, len(values) + 1), values, color=style["color"], **TRIAL)
    means = np.array([trials.mean for trials in series.by_epoch])
    epochs = np.arange(1, len(means) + 1)[moving - 1 :] - (moving - 1) / 2
    weights = np.full(moving, 1 / moving)
    means = np.convolve(means, weights, "valid") if len(means) >= moving else means[:0]
    every = max(1, round(series.curve.length / MARKERS_PER_CURVE))
    marked = ((every - 1 + int(first_marker * every)) % every, every)
    (line,) = axes.plot(epochs, means, markevery=marked, **style)
    return line


def _set_limits(axes: Axes, panel: _Panel, limits: Sequence[float]) -> None:
    """Limits of the vertical axis: losses from 0, or from the least mean; test
    accuracies from the least number after a tenth of the epochs; ``limits`` are inside."""
    axes.margins(y=0.05)
    shown = [series for series in panel.series.values() if series.epochs]
    ends = [series.by_epoch[-1].mean for series in shown]
    if not shown:
        axes.set_yticks([])
    elif panel.scale == "top":
        axes.set_ylim(min(ends) - NEAR / 2, max(ends) + NEAR / 4)
    elif panel.scale == "log":
        least = min(trials.mean for series in shown for trials in series.by_epoch)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(bottom=0.8 * max(least, 1e-6))
    elif "%" in axes.get_ylabel():
        first = 0 if panel.quantity == "recovery" else shown[0].epochs // 10
        late = [v for s in shown for values in s.trials.values() for v in values[first:]]
        top = min(axes.get_ylim()[1], 101)
        axes.set_ylim(min([10 * (min(late) // 10), *limits]), max([top, *limits]))
    else:
        axes.set_ylim(bottom=0)


def _draw_paper_axis(axes: Axes, scale: float) -> None:
    """Draws the epochs of the paper's schedule above the axes."""
    above = axes.secondary_xaxis(
        "top", functions=(lambda epoch: np.divide(epoch, scale), lambda e: np.multiply(e, scale))
    )
    above.set_xlabel("epoch of the paper's schedule", **FINE)
    above.tick_params(labelsize=FINE["fontsize"], labelcolor=MUTED)


def _columns(labels: Sequence[str]) -> int:
    """The number of labels that fit side by side above the axes."""
    longest = max(map(len, labels))
    return 3 if longest <= 18 and len(labels) > 2 else 2 if longest <= 28 else 1


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
