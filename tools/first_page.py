"""Regions of README.md that quote numbers of runs and of benchmarks."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from brief import LABELS, TABLE1, both, table
from committed import FULL_SCALE, Reference

from chainer_jo import files
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import read_packed
from chainer_jo.reproduction.tables_and_figures.table_layouts import NOISE_RATE

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks/results"


def result(found: Sequence[Reference]) -> str:
    """The result at the paper's scale on the official images, beside the paper's."""
    ours, paper = both(next(r for r in found if r.preset == FULL_SCALE), 1)
    rows = {
        "cross entropy, best epoch": TABLE1["cross entropy, best"],
        "cross entropy, last epoch": TABLE1["cross entropy, last"],
        "joint method, last epoch": TABLE1["joint, last"],
        "joint method, label accuracy": LABELS["label accuracy"],
    }
    lines = []
    for name, key in rows.items():
        here, there = ours[*key, NOISE_RATE], paper[*key, NOISE_RATE]
        lines.append([name, f"{here:.1f}", f"{there:.1f}", f"{here - there:+.1f}"])
    return table(["CIFAR-10, r = 0.5", "here (%)", "paper (%)", "difference"], lines)


def learning_rate(found: Sequence[Reference]) -> str:
    """Both facts about memorisation at a high learning rate, at the paper's scale."""
    at_scale = [r for r in found if r.preset == FULL_SCALE]
    (r,) = (r for r in at_scale if 2 in r.outputs("figure"))
    ends = {}
    for curve in r.outputs("figure")[2]["curves"]:
        log = read_packed(r.results)[curve["runs"][0]]["log"]
        ends[curve["label"]] = [100 * log[i]["accuracy/noisy"] for i in (9, -1)]
    (begin, high), (_, low) = ends["lr=0.2"], ends["lr=0.02"]
    clean, corrupted = before_the_first_update(at_scale[0])
    return (
        "**A high learning rate delays memorisation.** In Figure 2 at the paper's scale (JPEG, one "
        f"seed) a network at a rate of 0.2 predicts {begin:.0f} % of the noisy labels in epoch 10 "
        f"and {high:.0f} % in epoch 120, versus {low:.0f} % at 0.02. Where the method updates "
        "labels, little is memorised: in the epoch before the first update (official images, r = "
        f"0.5) the network predicts at least {clean} % of the clean labels and at most {corrupted} "
        "% of the corrupted ones."
    )


def before_the_first_update(r: Reference) -> tuple[int, int]:
    """Bounds on the shares (percent) of the clean labels and of the corrupted ones that the first
    step at r = 0.5 predicts in the epoch before the first update. The log has the shares of noisy
    and of true labels predicted; no corrupted label is predicted with its true one."""
    (run,) = (
        run for run in read_packed(r.results).values() if run["experiment"].get("relabelling")
    )
    right = run["result"]["noisy_labels_right"]
    log = run["log"][run["experiment"]["relabelling"]["start"] - 1]
    noisy, true = log["accuracy/noisy"], log["accuracy/true"]
    clean = (noisy + true - (1 - right)) / (2 * right)
    corrupted = (noisy - right * clean) / (1 - right)
    return math.floor(100 * clean), math.ceil(100 * corrupted)


def labels_of_people() -> str:
    """Labels of people corrected by ``relabel``, beside cleanlab's default filter and the filter
    that leaves most labels correct."""
    records = files.read_json(BENCHMARKS / "human_labels.json")["records"]
    correct: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        correct[record["task"]][record["method"]].append(100 * record["right"])
        correct[record["task"]]["before"].append(100 * record["right_before"])
    heads = ["label set", "before", "`relabel`", "cleanlab, default filter", "best filter"]
    rows = []
    for task, methods in correct.items():
        if ", " not in task:  # else drawn by class
            means = {method: statistics.fmean(shares) for method, shares in methods.items()}
            filters = {name: mean for name, mean in means.items() if name.startswith("cleanlab")}
            default = filters["cleanlab, prune_by_noise_rate"]
            shown = means["before"], means["relabel"], default, max(filters.values())
            rows.append([f"`{task}`", *(f"{mean:.1f}" for mean in shown)])
    return table(heads, rows)


def runs_in_words(r: Reference) -> str:
    """The runs of a folder: "cross entropy at r = 0, 0.5; both steps at r = 0.5"."""
    rates = defaultdict(set)
    for run in read_packed(r.results).values():
        experiment = Experiment.from_dict(run["experiment"])
        name = experiment.kind.replace("_", " ")
        if name in ("first step", "second step"):
            name = "both steps"
        elif not experiment.optimization.drops:
            name = "Figure 2"
        if experiment.noise.kind not in ("symmetric", "none"):
            name += f", {experiment.noise.kind} noise"
        rates[name].add(experiment.noise.rate)
    return "; ".join(
        f"{name} at r = {', '.join(f'{rate:g}' for rate in sorted(rates[name]))}"
        for name in sorted(rates, key=lambda name: (min(rates[name]), name))
    )
