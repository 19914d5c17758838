"""Style of figures: legible in print, in grey, and to colour-blind readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INK = "#222222"
MUTED = "#6b6b6b"
FAINT = "#dddddd"

#: Okabe and Ito's palette without its yellow, which is lost on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.6)), (0, (1, 1.4)), (0, (6, 1.6, 1, 1.6)))
MARKERS_PER_CURVE = 6

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
}


def line_styles(families: Sequence[str]) -> list[dict]:
    """Colour, marker and dashes of every curve; an empty family is one of its own.

    Members of a family share colour and marker, and each has dashes of its own.
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
