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

#: Runs of one step in words, by kind.
NAMES = {"cross_entropy": "cross entropy", "forward": "Forward", "cnn_crf": "CNN-CRF"}
BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks/results"


def result(found: Sequence[Reference]) -> str:
    """The result at the paper's scale on the official images, beside the paper's."""
    ours, paper = both(_at_scale(found, "table", 1), 1)
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
    """Memorisation at a high learning rate, at the paper's scale."""
    r = _at_scale(found, "figure", 2)
    images = "JPEG" if r.data == "cifar10-jpeg" else "official images"
    runs = read_packed(r.results)
    ends = {
        curve["label"]: labels_predicted(runs[curve["runs"][0]], -1)
        for curve in r.outputs("figure")[2]["curves"]
    }
    packed = read_packed(_at_scale(found, "table", 1).results)
    described = {name: Experiment.from_dict(run["experiment"]) for name, run in packed.items()}
    (first_step,) = (
        packed[name]
        for name, e in described.items()
        if e.relabelling and (e.noise.kind, e.noise.rate, e.seed) == ("symmetric", NOISE_RATE, 0)
    )
    start = first_step["experiment"]["relabelling"]["start"]
    clean, _, corrupted = labels_predicted(first_step, start - 1)
    return (
        "**At a high learning rate few corrupted labels are memorised.** In Figure 2 at the paper's"
        f" scale ({images}, r = 0.5, one seed) a network at a rate of 0.2 predicts at most "
        f"{ends['lr=0.2'][2]} % of the corrupted labels in epoch 120, versus at least "
        f"{ends['lr=0.02'][1]} % at 0.02. In the epoch before the first label update (official "
        f"images, r = 0.5) the network predicts at least {clean} % of the clean labels and at most "
        f"{corrupted} % of the corrupted ones."
    )


def _at_scale(found: Sequence[Reference], kind: str, number: int) -> Reference:
    """The first results at the paper's scale with a table or figure."""
    return next(r for r in found if r.preset == FULL_SCALE and number in r.outputs(kind))


def labels_predicted(run: dict, entry: int) -> tuple[int, int, int]:
    """Bounds on the shares (percent) of labels that a network predicts in an epoch: the least of
    the clean labels, the least and the most of the corrupted ones. The log has the shares of noisy
    and of true labels predicted; no corrupted label is predicted with its true one."""
    right, log = run["result"]["noisy_labels_right"], run["log"][entry]
    noisy, true = log["accuracy/noisy"], log["accuracy/true"]
    clean = (noisy + true - (1 - right)) / 2
    least, most = ((noisy - share) / (1 - right) for share in (min(right, true), clean))
    return math.floor(100 * clean / right), math.floor(100 * max(least, 0)), math.ceil(100 * most)


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
    """The runs of a folder: "cross entropy at r = 0, 0.5; both steps at r = 0.5". Methods with the
    same noise stand together."""
    rates = defaultdict(set)
    for run in read_packed(r.results).values():
        experiment = Experiment.from_dict(run["experiment"])
        name = NAMES.get(experiment.kind, "both steps")
        if not (experiment.optimization.drops or experiment.relabelling):
            name = "Figure 2"
        kind = experiment.noise.kind
        noise = "" if kind in ("symmetric", "none") else f", {kind} noise"
        rates[noise, name].add(experiment.noise.rate)
    together = defaultdict(list)
    for (noise, name), of_method in sorted(rates.items()):
        together[noise, tuple(sorted(of_method))].append(name)
    return "; ".join(
        f"{', '.join(names)}{noise} at r = {', '.join(f'{rate:g}' for rate in each)}"
        for (noise, each), names in sorted(together.items())
    )
