"""Phases of a training curve as one number per trial, for schedules of any length."""

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from statistics import fmean

from chainer_jo.reproduction.trials import Trials

Curve = Sequence[float]
Curves = Mapping[int, Curve | None]
"""Curves by trial; None for a diverged one."""

TRANSIENT = 3
"""Epochs after a division of the learning rate that are not read: accuracy rises in all methods."""


def twentieth(epochs: int) -> int:
    """The length of a phase in epochs: a twentieth of the training."""
    return max(1, epochs // 20)


def _each(curves: Curves, number: Callable[[Curve], float], epochs: int = 1) -> Trials:
    """`number` of every curve that has at least so many `epochs`."""
    long = {trial: c for trial, c in curves.items() if c is None or len(c) >= epochs}
    return Trials({trial: None if c is None else number(c) for trial, c in long.items()})


def _between(curves: Curves, start: int, stop: int) -> Trials:
    """The mean from one epoch to another; no numbers where the schedule is too short for it."""
    if start < 0:
        return Trials({})
    return _each(curves, lambda curve: fmean(curve[start:stop]), stop)


def end(curves: Curves) -> Trials:
    """The mean of the last twentieth of the epochs."""
    return _each(curves, lambda curve: fmean(curve[-twentieth(len(curve)) :]))


def peak(curves: Curves) -> Trials:
    """The mean over the twentieth of the epochs in which the other trials' mean is highest, or the
    trial's own mean if there is only one. A trial's own maximum is biased upwards by noise, so a
    flat curve would appear to drop."""

    def means(curve: Curve) -> list[float]:
        span = twentieth(len(curve))
        return [fmean(curve[i : i + span]) for i in range(len(curve) - span + 1)]

    by_trial = {trial: means(curve) for trial, curve in curves.items() if curve}

    def at(trial: int) -> float:
        others = [by_trial[other] for other in by_trial.keys() - {trial}] or [by_trial[trial]]
        totals = [fsum(each) for each in zip(*others, strict=True)]
        return by_trial[trial][totals.index(max(totals))]

    diverged: dict[int, float | None] = {t: None for t, curve in curves.items() if curve is None}
    return Trials({trial: at(trial) for trial in by_trial} | diverged)


def at_lowest(curves: Curves, losses: Curves) -> Trials:
    """The value at the epoch of each trial's lowest loss."""
    at = {trial: loss.index(min(loss)) for trial, loss in losses.items() if loss}
    return _each(
        {t: curve and curve[at[t] :] for t, curve in curves.items()}, lambda curve: curve[0]
    )


def before_drop(curves: Curves, schedule: tuple[int, Sequence[int]]) -> Trials:
    """The mean of the later half of the epochs before the first division of the learning rate."""
    drop = schedule[1][0]
    return _between(curves, drop // 2, drop)


def rises_at_drop(curves: Curves, schedule: tuple[int, Sequence[int]]) -> tuple[Trials, Trials]:
    """Rise of a curve from right before the first learning rate drop to after its transient, and
    over equally many epochs before: means over a twentieth of the epochs."""
    epochs, (drop, *_) = schedule
    span = twentieth(epochs)
    apart = span + TRANSIENT
    earlier, before, after = (
        _between(curves, start, start + span)
        for start in (drop - span - apart, drop - span, drop + TRANSIENT)
    )
    return after - before, before - earlier


def epochs_until(curves: Curves, levels: Trials) -> Trials:
    """Epochs until a trial's curve first reaches the trial's level; all epochs if it never does."""

    def count(trial: int) -> int | None:
        curve, level = curves[trial], levels.at(trial)
        if curve is None or level is None:
            return None
        return next((n for n, value in enumerate(curve, 1) if value >= level), len(curve))

    return Trials({trial: count(trial) for trial in curves if trial in levels.numbers})
