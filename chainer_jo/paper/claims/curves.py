"""Phases of a training curve as one number per trial, whatever the length of the schedule."""

from collections.abc import Sequence

from chainer_jo.paper.claims.scatter import Estimate, estimate

Curves = Sequence[Sequence[float]]


def _span(epochs: int) -> int:
    """How many epochs a phase is averaged over: a twentieth of the training."""
    return max(1, epochs // 20)


def _means(curves: Curves, start: int, stop: int) -> list[float]:
    return [sum(curve[start:stop]) / (stop - start) for curve in curves if len(curve) >= stop]


def end(curves: Curves) -> Estimate | None:
    """The mean of the last twentieth of the epochs."""
    return estimate([sum(c[-_span(len(c)) :]) / _span(len(c)) for c in curves if len(c)])


def start(curves: Curves) -> Estimate | None:
    """The first epoch."""
    return estimate([curve[0] for curve in curves if len(curve)])


def peak(curves: Curves) -> Estimate | None:
    """The highest mean over a twentieth of the epochs in a row."""
    highest = []
    for curve in curves:
        span = _span(len(curve))
        means = [sum(curve[i : i + span]) / span for i in range(len(curve) - span + 1)]
        highest += [max(means)] if means else []
    return estimate(highest)


def before_drop(curves: Curves, schedule: tuple[int, Sequence[int]]) -> Estimate | None:
    """The later half of the epochs before the learning rate is divided for the first time."""
    drop = schedule[1][0]
    return estimate(_means(curves, drop // 2, drop))


def after_drop(curves: Curves, schedule: tuple[int, Sequence[int]]) -> Estimate | None:
    """The twentieth of the epochs that follows the first division of the learning rate."""
    epochs, (drop, *_) = schedule
    return estimate(_means(curves, drop, drop + _span(epochs)))


def epochs_until(curves: Curves, level: float) -> Estimate | None:
    """How many epochs until a curve first reaches `level`; its whole length if it never does."""
    counts = []
    for curve in curves:
        reached = (epoch for epoch, value in enumerate(curve, 1) if value >= level)
        counts.append(next(reached, len(curve)))
    return estimate(counts)
