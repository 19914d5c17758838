"""Lines of ``--dry-run``: runs and their cost, one by one or script by script."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running import provenance
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


def why_lines(
    start: str, experiments: Sequence[Experiment], store: RunStore, left: Mapping[Experiment, int]
) -> list[str]:
    """State of the run whose id begins with ``start``, the reason, and the fields in which the
    nearest finished run is described otherwise.

    Raises UserError unless it is one run.
    """
    named = [e for e in experiments if e.id.startswith(start)]
    if len(named) != 1:
        found = f"{len(named)} runs, such as {named[0].id}" if named else "no run of this script"
        raise UserError(f"--dry-run {start}: {found}; expected the first letters of one run's id")
    (run,) = named
    result, epochs = store.result(run), run.optimization.epochs
    reason = "no result"
    if run in left and store.lost_labels(run):
        reason = "its labels are gone, and a second step needs them"
    elif result and run in left:
        reason = "--fresh repeats it"
    elif result:
        other = provenance.other_code([result]).partition("were ")[2]
        reason = other or "it has a result, made by this code"
    elif run.first_step and store.diverged(run.first_step):
        reason = "its first step diverged"
    elif left.get(run, epochs) < epochs:
        reason = f"no result; {epochs - left[run]} of {epochs} epochs are saved"
    state_now = "to do" if run in left else state(store, run) or "-"
    lines = [run.id, f"state: {state_now}", f"reason: {reason}"]
    mine, finished = _fields(run.to_dict()), store.finished()
    differing = {}
    for other_id in finished.keys() - {run.id}:
        theirs = _fields(finished[other_id]["experiment"])
        names = sorted(mine.keys() | theirs.keys())
        pairs = {name: (theirs.get(name), mine.get(name)) for name in names}
        differing[other_id] = {n: pair for n, pair in pairs.items() if pair[0] != pair[1]}
    if differing:
        nearest = min(differing, key=lambda other_id: (len(differing[other_id]), other_id))
        lines.append(f"nearest finished run: {nearest}")
        lines += [
            f"  {n}: {theirs}, here {ours}" for n, (theirs, ours) in differing[nearest].items()
        ]
    return lines


def _fields(description: dict, prefix: str = "") -> dict:
    """Fields of a description by name, fields of its parts as ``part.field``."""
    fields: dict = {}
    for name, value in description.items():
        path = prefix + name
        fields |= _fields(value, f"{path}.") if isinstance(value, dict) else {path: value}
    return fields


def _hours(seconds: float) -> str:
    return "?" if math.isnan(seconds) else f"{seconds / 3600:.2f}"
