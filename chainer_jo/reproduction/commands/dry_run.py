"""Lines of ``--dry-run``: runs and their cost, one by one or script by script."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.scheduler import with_first_steps
from chainer_jo.reproduction.running.status import Cost, duration
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import state
from chainer_jo.text import aligned


def run_lines(
    experiments: Sequence[Experiment], store: RunStore, waiting: Container[Experiment], cost: Cost
) -> list[str]:
    """One line per run: its state, its estimated time and its name."""
    lines = []
    for experiment in experiments:
        ended = "to do" if experiment in waiting else state(store, experiment) or "-"
        seconds = duration(cost.seconds(experiment))
        lines.append(f"{ended:9} {seconds:>8}  {experiment.id}")
    return lines


def script_lines(outputs: Sequence, left: Mapping[Experiment, int], cost: Cost) -> list[str]:
    """One line per table or figure, cheapest first; a run that several need counts in each.
    ``left`` are the epochs of each run to do."""
    runs = {output.name: with_first_steps(output.experiments) for output in outputs}
    users = Counter(experiment for needed in runs.values() for experiment in needed)
    rows = [["", "runs", "shared", "finished", "hours", "hours to do", "trials"]]
    for name, needed in runs.items():
        waiting = [e for e in needed if e in left]
        epochs = sum(e.optimization.epochs for e in needed), sum(left[e] for e in waiting)
        hours = [_hours(number * cost.seconds_per_epoch) for number in epochs]
        rows.append([
            name, str(len(needed)), str(sum(users[e] > 1 for e in needed)),
            str(len(needed) - len(waiting)), *hours, str(len({e.seed for e in needed})),
        ])  # fmt: skip
    return aligned(rows)


def _hours(seconds: float) -> str:
    return "?" if math.isnan(seconds) else f"{seconds / 3600:.2f}"
