"""Draws Figure 1; everything is placed in inches from the lower left."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Circle, Ellipse, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from chainer_jo.report import figure_style as style
from chainer_jo.report.plot import images

SIZE = (7.0, 3.9)
THETA, LABELS = style.COLOURS[0], style.COLOURS[1]
CLASSES = ("cat", "dog", "car")
#: Of three images, one of each class: the noisy labels, the first of which is right, what the
#: network makes of the images, and the mean of that, which the labels become.
NOISY = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
PROBABILITIES = ((0.92, 0.06, 0.02), (0.20, 0.72, 0.08), (0.12, 0.04, 0.84))
AVERAGED = ((0.88, 0.10, 0.02), (0.24, 0.66, 0.10), (0.18, 0.04, 0.78))
WIDTH, ROW, GAP = 1.2, 0.3, 0.08
UP, DOWN = 2.42, 0.6
"""Lower edges of the two rows of the drawing."""
HEIGHT = 3 * ROW + 2 * GAP
LEFT, MIDDLE, RIGHT = 0.35, 2.6, 5.3


def draw() -> dict[str, bytes]:
    """The drawing as ``{".png": ..., ".pdf": ...}``."""
    with matplotlib.rc_context({**style.RC, "font.size": 10.5}):
        canvas = Canvas(SIZE)
        axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(0, SIZE[1]), aspect="equal")
        axes.axis("off")
        _images(axes, LEFT, UP)
        _network(axes, MIDDLE, UP)
        _bars(axes, RIGHT, UP, PROBABILITIES, THETA)
        _bars(axes, RIGHT, DOWN, AVERAGED, THETA, stacked=True)
        _bars(axes, MIDDLE, DOWN, AVERAGED, LABELS)
        _bars(axes, LEFT, DOWN, NOISY, style.MUTED)
        for x, y, words in (
            (LEFT, UP, "images $X$"),
            (MIDDLE, UP, r"CNN with parameters $\theta$"),
            (RIGHT, UP, r"probabilities $s(\theta, x)$"),
        ):
            axes.text(x + WIDTH / 2, y + HEIGHT + 0.16, words, ha="center", va="bottom")
        for x, y, words in (
            (LEFT, DOWN, "noisy labels"),
            (MIDDLE, DOWN, "labels $Y$"),
            (RIGHT, DOWN, "mean of the past epochs"),
        ):
            axes.text(x + WIDTH / 2, y - 0.3, words, ha="center", va="top")
        _arrows(axes)
        return images(canvas)


def _arrows(axes: Axes) -> None:
    top, bottom = UP + HEIGHT / 2, DOWN + HEIGHT / 2
    _arrow(axes, (LEFT + WIDTH + 0.12, top), (MIDDLE - 0.12, top), style.INK)
    _arrow(axes, (MIDDLE + WIDTH + 0.12, top), (RIGHT - 0.12, top), style.INK)
    right, middle = RIGHT + WIDTH / 2, MIDDLE + WIDTH / 2
    _arrow(axes, (right, UP - 0.26), (right, DOWN + HEIGHT + 0.2), style.INK)
    _arrow(axes, (LEFT + WIDTH + 0.12, bottom), (MIDDLE - 0.12, bottom), style.MUTED, dashed=True)
    axes.text(
        (LEFT + WIDTH + MIDDLE) / 2, bottom + 0.08, "at first",
        color=style.MUTED, ha="center", va="bottom",
    )  # fmt: skip
    _arrow(axes, (RIGHT - 0.16, bottom), (MIDDLE + WIDTH + 0.12, bottom), LABELS, bold=True)
    between = (MIDDLE + WIDTH + RIGHT) / 2
    axes.text(between, bottom + 0.1, "② update $Y$", color=LABELS, ha="center", va="bottom")
    axes.text(between, bottom - 0.12, r"($\theta$ fixed)", color=LABELS, ha="center", va="top")
    _arrow(axes, (middle, DOWN + HEIGHT + 0.1), (middle, UP - 0.12), THETA, bold=True)
    height = (DOWN + HEIGHT + UP) / 2
    axes.text(
        middle + 0.12, height, r"① update $\theta$ by SGD on $\mathcal{L}(\theta, Y | X)$" "\n"
        "     ($Y$ fixed)", color=THETA, ha="left", va="center", linespacing=1.5,
    )  # fmt: skip


def _arrow(
    axes: Axes, start: tuple, end: tuple, colour: str, bold: bool = False, dashed: bool = False
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=13, shrinkA=0, shrinkB=0, color=colour,
            linewidth=2.0 if bold else 1.2, linestyle=(0, (3, 2)) if dashed else "-",
        )
    )  # fmt: skip


def _row(y: float, number: int) -> float:
    """Lower edge of the row of image ``number``, the first on top."""
    return y + (2 - number) * (ROW + GAP)


def _bars(
    axes: Axes, x: float, y: float, values: Sequence[Sequence[float]], colour: str,
    stacked: bool = False,
) -> None:  # fmt: skip
    """One row of bars per image, one bar per class; ``stacked`` suggests many such rows."""
    for number, row in enumerate(values):
        lower = _row(y, number)
        for back in (0.06, 0.03, 0.0) if stacked else (0.0,):
            axes.add_patch(
                Rectangle(
                    (x + back, lower + back), WIDTH, ROW, facecolor="white",
                    edgecolor=style.MUTED if back == 0 else "#bbbbbb", linewidth=0.7,
                )
            )  # fmt: skip
        for k, value in enumerate(row):
            axes.add_patch(
                Rectangle(
                    (x + 0.12 + 0.36 * k, lower), 0.24, 0.92 * ROW * value,
                    facecolor=colour, linewidth=0,
                )
            )  # fmt: skip
    for k, name in enumerate(CLASSES):
        axes.text(
            x + 0.24 + 0.36 * k, y - 0.05, name,
            fontsize=8.5, color=style.MUTED, ha="center", va="top",
        )  # fmt: skip


def _network(axes: Axes, x: float, y: float) -> None:
    """Feature maps that get smaller and more, from left to right."""
    for k, (width, height) in enumerate(((0.12, 1.0), (0.16, 0.76), (0.2, 0.52), (0.24, 0.28))):
        size = height * HEIGHT
        axes.add_patch(
            FancyBboxPatch(
                (x + 0.02 + 0.3 * k, y + (HEIGHT - size) / 2), width, size,
                boxstyle="round,pad=0,rounding_size=0.04",
                facecolor=THETA, alpha=0.3 + 0.2 * k, linewidth=0,
            )
        )  # fmt: skip


def _images(axes: Axes, x: float, y: float) -> None:
    """A cat, a dog and a car."""
    x += WIDTH / 2
    ink = {"facecolor": style.INK, "linewidth": 0}
    for number, icon in enumerate((_cat, _dog, _car)):
        lower = _row(y, number)
        axes.add_patch(
            Rectangle(
                (x - 0.24, lower), 0.48, ROW,
                facecolor="#f2f2f2", edgecolor=style.MUTED, linewidth=0.7,
            )
        )  # fmt: skip
        for patch in icon(x, lower + ROW / 2, ink):
            axes.add_patch(patch)


def _cat(x: float, y: float, ink: dict) -> list:
    ears = [
        Polygon([(x + s * 0.09, y + 0.01), (x + s * 0.085, y + 0.125), (x + s * 0.015, y + 0.07)],
                **ink) for s in (-1, 1)
    ]  # fmt: skip
    return [Circle((x, y - 0.02), 0.09, **ink), *ears, *_eyes(x, y)]


def _dog(x: float, y: float, ink: dict) -> list:
    ears = [Ellipse((x + s * 0.1, y - 0.01), 0.06, 0.16, angle=s * 14, **ink) for s in (-1, 1)]
    return [Ellipse((x, y), 0.16, 0.2, **ink), *ears, *_eyes(x, y + 0.02)]


def _eyes(x: float, y: float) -> list:
    return [Circle((x + s * 0.035, y), 0.014, facecolor="white", linewidth=0) for s in (-1, 1)]


def _car(x: float, y: float, ink: dict) -> list:
    roof = [(x - 0.1, y), (x - 0.06, y + 0.08), (x + 0.05, y + 0.08), (x + 0.1, y)]
    wheels = [
        Circle((x + s * 0.085, y - 0.065), 0.036, facecolor=style.INK, edgecolor="#f2f2f2",
               linewidth=0.8) for s in (-1, 1)
    ]  # fmt: skip
    return [Rectangle((x - 0.17, y - 0.06), 0.34, 0.07, **ink), Polygon(roof, **ink), *wheels]
