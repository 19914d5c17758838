"""Finds wrong labels with `chainer_jo.relabel`, with cleanlab, and by disagreement, side by side.

    python benchmarks/label_errors.py --features FILE.npz --json FILE.json

The data: the pixels of scikit-learn's digits; and, with --features, CIFAR-10 by embeddings, see
`label_tasks.py`. All methods see the same features and labels; they take turns in an order that
changes with the seed. A Markdown table is written beside the JSON file, to which records are added
as they come: the same command adds what is missing, if the commit is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files  # noqa: E402  (before chainer)

# isort: split
import chainer  # noqa: E402
import machine  # noqa: E402
import numpy as np  # noqa: E402
from label_errors_page import (  # noqa: E402
    COLUMNS,
    Blocks,
    before,
    best_of,
    doubted,
    markdown,
    percent,
    table,
)
from label_tasks import Task, tasks_of  # noqa: E402
from sklearn.base import BaseEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from chainer_jo.command_line import exit_codes  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.relabel.estimate import training  # noqa: E402
from chainer_jo.relabel.estimate.features import FeatureSet  # noqa: E402
from chainer_jo.relabel.estimate.folds import near_duplicates  # noqa: E402
from chainer_jo.relabel.estimate.label_errors import LabelErrors, find_label_errors  # noqa: E402
from chainer_jo.relabel.estimate.label_noise import majority  # noqa: E402
from chainer_jo.relabel.estimate.training import Recipe  # noqa: E402
from chainer_jo.reproduction.running.provenance import provenance  # noqa: E402


class Verdict(NamedTuple):
    """Arrays (n,): label judged wrong, new label, probability of the given label. True if the new
    labels may be no better, and the `Outcome.choice` among several features."""

    wrong: np.ndarray
    new: np.ndarray
    probability_given: np.ndarray
    doubt: bool = False
    choice: dict[str, float] | None = None


def relabel(features: np.ndarray, given: np.ndarray, seed: int, **settings) -> Verdict:
    """The method, with near duplicates in one fold."""
    c = int(given.max()) + 1
    data = FeatureSet(features, given)
    return verdict_of(training.estimate_errors(data, given, range(c), Recipe(**settings), seed))


def decision_with_regression(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
    return verdict_of(find_label_errors(given, crossed(scaled_regression(), features, given, seed)))


def disagreement(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
    """Wrong is what a network trained on all given labels predicts otherwise."""
    one_hot = np.eye(int(given.max()) + 1, dtype=np.float32)[given]
    data, rows = FeatureSet(features, given), np.arange(len(given))
    model = training.second_step(data, one_hot, Recipe(), seed)
    probabilities = training.predict(model, data.inputs(rows))
    new = probabilities.argmax(axis=1)
    return Verdict(new != given, new, probabilities[rows, given])


def cleanlab_with_our_network(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
    data, c = FeatureSet(features, given), int(given.max()) + 1
    return _cleanlab(training.out_of_fold(data, given, c, Recipe(), seed), given)


def cleanlab_with(model: Callable[[], BaseEstimator]) -> Callable[..., Verdict]:
    def method(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
        return _cleanlab(crossed(model(), features, given, seed), given)

    return method


def scaled_regression() -> BaseEstimator:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))


def crossed(model: BaseEstimator, features: np.ndarray, given: np.ndarray, seed: int) -> np.ndarray:
    """In folds at random, as `relabel`'s: rows go class by class, those of the digits by writer."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, features, given, cv=folds, method="predict_proba")


def verdict_of(errors: LabelErrors) -> Verdict:
    return Verdict(errors.wrong, errors.new, errors.probability_given, bool(errors.doubt))


def _cleanlab(
    probabilities: np.ndarray, given: np.ndarray, rule: str = "prune_by_noise_rate"
) -> Verdict:
    """``rule`` is `filter_by` of cleanlab, by default its own."""
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise UserError("cleanlab: not installed, expected the extra bench") from None
    wrong = find_label_issues(given, probabilities, filter_by=rule, n_jobs=1)
    new = np.where(wrong, probabilities.argmax(axis=1), given)
    return Verdict(wrong, new, probabilities[np.arange(len(given)), given])


class SameNetworks:
    """Out-of-fold probabilities (n, c) of `relabel`'s networks, computed once for all methods that
    ask for them in turn."""

    def __init__(self) -> None:
        self._key: tuple = ()
        self._probabilities = np.empty((0, 0))

    def __call__(self, features: np.ndarray, given: np.ndarray, seed: int) -> np.ndarray:
        arrays = (np.ascontiguousarray(array) for array in (features, given))
        key = seed, *(hashlib.sha256(array.data).digest() for array in arrays)
        if key != self._key:
            data, c = FeatureSet(features, given), int(given.max()) + 1
            groups = near_duplicates(data.values)
            found = training.out_of_fold(data, given, c, Recipe(), seed, groups)
            self._key, self._probabilities = key, found
        return self._probabilities

    def relabel(self, features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
        return verdict_of(find_label_errors(given, self(features, given, seed)))

    def cleanlab(self, rule: str) -> Callable[..., Verdict]:
        return lambda *what: _cleanlab(self(*what), what[1], rule)


RELABEL, CLEANLAB = "relabel", "cleanlab, "
REGRESSION = f"{CLEANLAB}regression"
#: Methods (features, given, seed) -> verdict by name.
Methods = dict[str, Callable[..., Verdict]]
METHODS: Methods = {
    RELABEL: relabel,
    "relabel, labels updated by eq. 9": lambda *what: relabel(*what, rule="soft"),
    "relabel's decision, scaled regression": decision_with_regression,
    REGRESSION: cleanlab_with(lambda: LogisticRegression(max_iter=1000)),
    f"{CLEANLAB}scaled regression": cleanlab_with(scaled_regression),
    f"{CLEANLAB}20 nearest neighbours": cleanlab_with(lambda: KNeighborsClassifier(20)),
    f"{CLEANLAB}relabel's network": cleanlab_with_our_network,
    "a network disagrees": disagreement,
}


def measure(task: Task, method: Callable[..., Verdict], seed: int) -> dict:
    """One method's scores and its seconds: by the clock, and of the processor."""
    rows, given = task.draw(seed)
    features, true = task.features[rows], task.true[rows]
    clock, processors = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cross_val_predict warns of classes of few images
        verdict = method(features, given, seed)
    seconds = time.perf_counter() - clock, time.process_time() - processors
    given = majority(given)
    bad = given != true
    found, called = int((verdict.wrong & bad).sum()), int(verdict.wrong.sum())
    scores = dict.fromkeys(("precision", "recall", "f1", "average_precision"))
    if bad.any():
        scores = {
            "precision": found / max(called, 1),
            "recall": found / int(bad.sum()),
            "f1": 2 * found / (called + int(bad.sum())),
            "average_precision": float(average_precision_score(bad, -verdict.probability_given)),
        }
    return {
        **scores,
        "right_before": float(1 - bad.mean()),
        "right": float((verdict.new == true).mean()),
        "broken": int(((verdict.new != true) & ~bad).sum()),
        "doubt": verdict.doubt,
        **({"choice": verdict.choice} if verdict.choice else {}),
        "seconds": seconds[0],
        "processor_seconds": seconds[1],
    }


def records(tasks: list[Task], seeds_: list[int], methods: Methods, done: list) -> Iterator[dict]:
    """One after the other; those in ``done`` are left out."""
    names = list(methods)
    keys = ("task", "seed", "method")
    there = {tuple(record[key] for key in keys) for record in done}
    for position, seed in enumerate(seeds_):
        turn = position % len(names)
        for task in tasks:
            for name in names[turn:] + names[:turn]:
                key = (task.name, seed, name)
                if key not in there:
                    yield {
                        **dict(zip(keys, key, strict=True)),
                        **measure(task, methods[name], seed),
                    }


def summary(blocks: Blocks) -> list[str]:
    """`relabel` next to the method of cleanlab with the best mean F1; times by seed."""
    found = [["", "correct before", "F1", "labels correct", "cleanlab's best", "F1"]]
    found[0].append("labels correct")
    costs = [["", "doubted", "time / time of cleanlab's best", "time / time of its regression"]]
    for task, block in blocks.items():
        if RELABEL not in block or not (best := best_of(block, CLEANLAB)):
            continue
        ours, theirs = block[RELABEL], block[best]
        cells = [task, f"{before(block):.1f}", *_shares(ours), best.removeprefix(CLEANLAB)]
        found.append([*cells, *_shares(theirs)])
        costs.append(
            [task, doubted(ours), *(_ratio(ours, block.get(k)) for k in (best, REGRESSION))]
        )
    return [
        "`relabel` next to the method of cleanlab with the best F1, picked by the true labels:",
        "",
        *table(found),
        "",
        "Runs that warn that the new labels may be no better, and the processor time of `relabel` "
        "as a multiple of cleanlab's, the median of runs:",
        "",
        *table(costs),
    ]


def _shares(rows: list[dict]) -> tuple[str, str]:
    return percent(rows, "f1"), percent(rows, "right")


def _ratio(ours: list[dict], theirs: list[dict] | None) -> str:
    # A process's seconds may be counted in hundredths.
    by_seed = {r["seed"]: max(r["processor_seconds"], 0.01) for r in theirs or []}
    ratios = [r["processor_seconds"] / by_seed[r["seed"]] for r in ours if r["seed"] in by_seed]
    return f"{np.median(ratios):.2f}" if ratios else "-"


def flags_of(names: list[str]) -> argparse.ArgumentParser:
    """Flags of a comparison of methods with these names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--features", type=Path, metavar="FILE", help="embeddings of CIFAR-10")
    add("--tasks", nargs="+", default=[], metavar="TASK", help="default: all")
    add("--methods", nargs="+", choices=names, default=names, metavar="METHOD")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    add("--threads", type=int, default=1)
    add("--note", default="", help="about the machine, for the table")
    add("--json", type=Path, metavar="FILE", help="write the result there")
    return parser


def command(options: argparse.Namespace, script: str, methods: Iterable[str]) -> str:
    """What was asked for, without the names of files."""
    words = ["--features", "FILE.npz"] if options.features else []
    words += ["--data", "CIFAR10"] if getattr(options, "data", None) else []
    words += ["--tasks", *options.tasks] if options.tasks else []
    words += [] if options.methods == list(methods) else ["--methods", *options.methods]
    words += ["--seeds", *map(str, options.seeds), "--threads", str(options.threads)]
    return f"python benchmarks/{script} {shlex.join(words)}"


def compare(
    options: argparse.Namespace,
    script: str,
    tasks: list[Task],
    methods: Methods,
    summary: Callable[[Blocks], list[str]],
    columns: Sequence[tuple] = COLUMNS,
) -> None:
    """Measures methods on tasks, and writes records and page, its tables with these columns."""
    same = {
        "threads": options.threads,
        "machine": machine.describe(options.threads),
        "versions": {
            name: machine.version(name) for name in ("cleanlab", "crowd-kit", "scikit-learn")
        },
        "features": options.features and files.digest(options.features),
        "provenance": provenance(chainer.get_device("@numpy"), None),
    }
    about = {"command": command(options, script, methods), "note": options.note}
    result = {**about, **same, "records": []}
    if options.json and options.json.exists():
        old = files.read_json(options.json)
        if all(old.get(key) == value for key, value in same.items()):
            result["records"] = old["records"]
    chosen = {name: methods[name] for name in options.methods}
    with threadpool_limits(options.threads):
        for record in records(tasks, options.seeds, chosen, list(result["records"])):
            result["records"].append(record)
            print(
                f"{record['task']}, seed {record['seed']}, {record['method']}: labels correct "
                f"{record['right']:.3f}, {record['processor_seconds']:.2f} s",
                flush=True,
            )
            if options.json:
                files.write_json(options.json, result)
    whole = methods.keys() <= {record["method"] for record in result["records"]}
    text = markdown(result, summary if whole else lambda blocks: [], columns)
    print(text)
    if options.json:
        files.write_text(options.json.with_suffix(".md"), text)


def main(arguments: list[str] | None = None) -> None:
    with exit_codes():
        options = flags_of(list(METHODS)).parse_args(arguments)
        compare(options, Path(__file__).name, tasks_of(options), METHODS, summary)


if __name__ == "__main__":
    main()
