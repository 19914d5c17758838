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

from chainer_jo.reproduction.claims.phases import twentieth
from chainer_jo.reproduction.tables_and_figures.curves import LOG_ENTRIES, Event, Series, events_of

INK = "#222222"
MUTED = "#6b6b6b"
FAINT = "#dddddd"

#: The palette of Okabe and Ito without yellow, which is illegible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (6, 1.6, 1, 1.6)))
MARKERS_PER_CURVE = 6
THIN: dict[str, Any] = {"linestyle": ":", "linewidth": 1.0, "markersize": 3}
LEVEL: dict[str, Any] = {"linestyle": (0, (5, 2)), "linewidth": 1.0}
"""Styles of KL divergences and of the entropy of the noise, in the colours of their curves."""

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
    """Colour, marker and dashes of every curve: members of a family share colour and marker and
    differ in dashes. A curve with an empty family shares nothing."""
    families = [family or f"curve {number}" for number, family in enumerate(families)]
    order, styles = list(dict.fromkeys(families)), []
    for number, family in enumerate(families):
        index, member = order.index(family), families[:number].count(family)
        colour = COLOURS[index % len(COLOURS)]
        styles.append(
            {
                "color": colour,
                "marker": MARKERS[index % len(MARKERS)],
                "linestyle": DASHES[member % len(DASHES)],
                "markerfacecolor": "white" if member else colour,
            }
        )
    return styles


WIDTH_INCHES = 5.2
"""Small, so that letters can be read on a phone."""
LEGEND_ROW_INCHES = 0.17
FINE: dict[str, Any] = {"fontsize": 8.5, "color": MUTED}
"""Style of notes, legible in a figure 480 pixels wide."""
BLANK: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
"""Box under a note, which hides lines behind it."""
TITLE_CHARACTERS, NOTE_CHARACTERS = 62, 74
LETTER, NOTE_ROW = 0.015, 0.16
"""Width of a note's character in fractions of the axes, and height of its line in inches."""
FLAT, NEAR = 1.0, 5.0
"""Points of accuracy: a curve this close to its end is flat; curves whose ends are this close to
the highest end are magnified."""


class _Panel(NamedTuple):
    """Axes with curves, by number. ``scale``: "linear", "log", or "top" for the highest curves."""

    curves: Sequence[int]
    scale: str = "linear"
    title: str = ""


def plot(
    title: str,
    key: str,
    all_series: Sequence[Series],
    secondary: Mapping[int, Series],
    footnote: str,
    time_scale: float = 1.0,
    moving_means: bool = False,
) -> dict[str, bytes]:
    """A figure of curves as ``{".png": ..., ".pdf": ...}``.

    Losses have a second panel with a logarithmic axis, and label accuracies one of the highest
    curves; label accuracies end where all of them are flat.

    Parameters
    ----------
    key : one of `curves.LOG_ENTRIES`.
    all_series : one per curve; a series without epochs appears in the legend only.
    secondary : dotted series without bands, by the number of their curve.
    time_scale : epochs per epoch of the paper's schedule.
    moving_means : whether a single trial has the means over a twentieth of the epochs, too.
    """
    curves = [series.curve for series in all_series]
    events, length = events_of(curves), max(curve.length for curve in curves)
    if key == "recovery" and (flat := _flat_from(all_series, length)) < length:
        footnote += f" All curves are flat after epoch {flat}, where the axis ends."
        length = flat
    span = twentieth(length) if moving_means else 1
    moving = span if all(len(series.trials) <= 1 for series in all_series) else 1
    if moving > 1:
        footnote += f" Thick lines: moving means over {moving} epochs."
    panels = _panels(key, all_series)
    heights = [2.7, *[2.1] * (len(panels) - 1)] if len(panels) > 1 else [3.4]  # inches
    labels = [
        f"{series.curve.label} ({series.state})" if series.state else series.curve.name
        for series in all_series
    ]
    styles: dict[int, dict] = {}
    lines: dict[str, Line2D] = {}
    further = {"KL divergence (eq. 6)": THIN} if secondary else {}
    if any(curve.level for curve in curves):
        further["entropy of the noise"] = LEVEL
    with matplotlib.rc_context(RC):
        canvas = Canvas(layout="constrained")
        rows = canvas.subplots(len(panels), squeeze=False, sharex=True, height_ratios=heights)
        for panel, axes in zip(panels, rows[:, 0], strict=True):
            if panel.scale == "linear":
                families = [curves[n].family for n in panel.curves]
                styles.update(zip(panel.curves, line_styles(families), strict=True))
            for place, n in enumerate(panel.curves):
                style, first_marker = styles[n], place / len(panel.curves)
                band = panel.scale != "top"
                line = _draw(axes, all_series[n], style, first_marker, length, moving, band)
                lines.setdefault(labels[n], line)
                if n in secondary:
                    _draw(axes, secondary[n], {**style, **THIN}, first_marker, length, band=False)
                if events and panel.scale == "linear" and (level := curves[n].level):
                    axes.hlines(level, 0, events[0].epoch, colors=style["color"], **LEVEL)
            axes.set_title(panel.title, loc="left", fontsize=9)
            axes.set_ylabel(LOG_ENTRIES[key].axis)
            _set_limits(axes, panel, [all_series[n] for n in panel.curves], length)
            colours = {n: styles[n]["color"] for n in panel.curves}
            _draw_events(axes, events, colours, length, heights[0] if panel is panels[0] else 0)
        axes.set_xlabel("epoch")
        axes.set_xlim(0, 1.01 * length)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if time_scale != 1:
            _draw_paper_axis(rows[0, 0], time_scale)
        title = textwrap.fill(title.replace(" = ", "\xa0=\xa0"), TITLE_CHARACTERS)
        lines |= {k: Line2D([], [], color=MUTED, **style) for k, style in further.items()}
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


def _panels(key: str, all_series: Sequence[Series]) -> list[_Panel]:
    everything, names = range(len(all_series)), [series.curve.panel for series in all_series]
    panels = [
        _Panel([n for n in everything if names[n] == name], title=name)
        for name in dict.fromkeys(names)
    ]
    ends = {n: s.by_epoch[-1].mean for n, s in enumerate(all_series) if s.epochs}
    if key == "cross_entropy" and ends:
        panels.append(_Panel(everything, "log"))
    near = [n for n, end in ends.items() if end > max(ends.values()) - NEAR]
    if key == "recovery" and 1 < len(near) < len(ends):
        panels.append(_Panel(near, "top"))
    return panels


def _flat_from(all_series: Sequence[Series], length: int) -> int:
    """Epoch after which all means stay within `FLAT` points of their ends, and half as many epochs
    more; ``length`` without one."""
    return max(
        (
            epoch * 3 // 2
            for series in all_series
            for epoch, trials in enumerate(series.by_epoch, 1)
            if abs(trials.mean - series.by_epoch[-1].mean) > FLAT
        ),
        default=length,
    )


def _draw(
    axes: Axes,
    series: Series,
    style: dict,
    first_marker: float,
    length: int,
    moving: int = 1,
    band: bool = True,
) -> Line2D:
    """Draws the means or moving means over so many epochs, and a band of one standard deviation, if
    any.

    Markers are equally spaced on every curve. The first marker is at the fraction ``first_marker``
    of the spacing, so that the markers of different curves do not overlap.
    """
    means = [trials.mean for trials in series.by_epoch]
    epochs: np.ndarray = np.arange(1, len(means) + 1)
    if moving > 1:
        axes.plot(epochs, means, color=style["color"], linewidth=0.6, alpha=0.6)
        epochs = epochs[moving - 1 :] - (moving - 1) / 2
        means = [float(np.mean(means[i : i + moving])) for i in range(len(epochs))]
    every = max(1, round(min(series.curve.length, length) / MARKERS_PER_CURVE))
    marked = ((every - 1 + int(first_marker * every)) % every, every)
    (line,) = axes.plot(epochs, means, markevery=marked, **style)
    spread = [
        (n, trials.mean - trials.std, trials.mean + trials.std)
        for n, trials in enumerate(series.by_epoch, 1)
        if band and trials.std is not None
    ]
    if spread:
        n, lower, upper = zip(*spread, strict=True)
        axes.fill_between(n, lower, upper, color=style["color"], alpha=0.18, linewidth=0)
    return line


def _set_limits(axes: Axes, panel: _Panel, all_series: Sequence[Series], length: int) -> None:
    """Limits of the vertical axis: losses from 0, or from the least mean; accuracies from the
    least mean after a tenth of the epochs."""
    axes.margins(y=0.1)
    ends = [series.by_epoch[-1].mean for series in all_series if series.epochs]
    if not ends:
        axes.set_yticks([])
    elif panel.scale == "top":
        axes.set_ylim(min(ends) - NEAR / 2, max(ends) + NEAR / 4)
    elif panel.scale == "log":
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(bottom=0.8 * shown[shown > 0].min(initial=1))
    elif "%" in axes.get_ylabel():
        after = (t.mean for s in all_series for t in s.by_epoch[min(s.epochs, length) // 10 :])
        axes.set_ylim(bottom=10 * (min(after) // 10))
    else:
        axes.set_ylim(bottom=0)


def _draw_events(
    axes: Axes, events: Sequence[Event], colours: Mapping[int, str], length: int, inches: float
) -> None:
    """Draws events as dotted lines in the colours of their curves, in grey for all curves, and
    their texts in axes whose height in ``inches`` is given."""
    row, rows, end = 0, 0, 0.0
    for epoch, event, curves in events:
        mine = [colours[n] for n in colours if n in curves]
        mine = [MUTED] if len(mine) == len(colours) else mine
        for place, colour in enumerate(mine):  # each draws every so many dots
            dots = (1.2 * 2 * place, (1.2, 1.2 * (2 * len(mine) - 1)))
            axes.axvline(epoch, color=colour, linestyle=dots, linewidth=1.2, zorder=1)
        if not inches:
            continue
        row = row + 1 if epoch < end else 0  # below a note that reaches as far as here
        rows = max(row, rows)
        end = epoch + LETTER * len(event) * length
        colour = mine[0] if len(mine) == 1 else MUTED
        axes.text(
            epoch, 0.985 - NOTE_ROW * row / inches, f" {event}", fontsize=FINE["fontsize"],
            color=colour, va="top", bbox=BLANK, transform=axes.get_xaxis_transform(),
        )  # fmt: skip
    if rows:
        bottom, top = axes.get_ylim()
        axes.set_yticks([tick for tick in axes.get_yticks() if bottom <= tick <= top])
        axes.set_ylim(top=top + 2 * NOTE_ROW / inches * rows * (top - bottom))


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
