"""Finds wrong labels with this project's method, with cleanlab, and by disagreement, side by side.

    python benchmarks/label_errors.py --features FILE.npz --json FILE.json

Three tasks: the pixels of scikit-learn's digits as features; their images; and, with --features,
CIFAR-10 by embeddings: an array `features` (50000, d), class by class in the order of sorted class
names, of which the first 1,000 of each class are trained on and the last 1,000 test. Noise is the
paper's. All methods see the same images and labels; they take turns in an order that changes with
the seed. A Markdown table is written beside the JSON file, to which records are added as they come:
called again, what is there already, of the same commit, is not computed again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files, seeds  # noqa: E402  (before chainer)

# isort: split
import chainer  # noqa: E402
import machine  # noqa: E402
import numpy as np  # noqa: E402
from cleanlab.filter import find_label_issues  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402
from sklearn.model_selection import cross_val_predict  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from chainer_jo.datasets import digits, noise  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.experiments.provenance import provenance  # noqa: E402
from chainer_jo.functions import providers  # noqa: E402
from chainer_jo.relabel import training  # noqa: E402
from chainer_jo.relabel.features import FeatureSet  # noqa: E402
from chainer_jo.relabel.label_errors import find_label_errors  # noqa: E402
from chainer_jo.relabel.training import Settings  # noqa: E402

NOISES = (
    ("symmetric", 0.2),
    ("symmetric", 0.4),
    ("symmetric", 0.6),
    ("asymmetric", 0.2),
    ("asymmetric", 0.4),
)
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer")
CIFAR10 += ("dog", "frog", "horse", "ship", "truck")
#: Rows of each class of the embeddings, of which there are so many.
PER_CLASS, TRAINED_ON, TEST = 5000, slice(0, 1000), slice(4000, 5000)


@dataclass(frozen=True, eq=False)
class Task:
    """One data set: what networks see, what logistic regression sees, and true labels.

    ``data`` is made afresh by each method, so that none profits from what another has computed.
    """

    name: str
    data: Callable[[], FeatureSet]
    settings: Settings
    features: np.ndarray
    true: np.ndarray
    test_features: np.ndarray
    test_true: np.ndarray
    class_names: tuple[str, ...]

    def given(self, kind: str, rate: float, seed: int) -> np.ndarray:
        """Labels (n,) with the paper's noise."""
        rng = seeds.generator(seed, "noise")
        if kind == "symmetric":
            return noise.symmetric(self.true, rate, len(self.class_names), rng)
        transitions = noise.transitions_of(self.class_names)
        return noise.asymmetric(self.true, rate, transitions, rng)


class Verdict(NamedTuple):
    """Of n labels: which are wrong, what they become, and the probability of the given one."""

    wrong: np.ndarray
    new: np.ndarray
    probability_given: np.ndarray


def ours(task: Task, given: np.ndarray, seed: int, settings: Settings) -> Verdict:
    """The method with some settings."""
    return _bayes(_out_of_sample(task, given, seed, settings), given)


def regression_with_our_decision(task: Task, given: np.ndarray, seed: int) -> Verdict:
    return _bayes(_regression(task, given), given)


def cleanlab_with_regression(task: Task, given: np.ndarray, seed: int) -> Verdict:
    return _cleanlab(_regression(task, given), given)


def cleanlab_with_our_network(task: Task, given: np.ndarray, seed: int) -> Verdict:
    """The probabilities of the method's first step, in as many folds as the regression."""
    settings = replace(task.settings, folds=5)
    return _cleanlab(_out_of_sample(task, given, seed, settings), given)


def disagreement(task: Task, given: np.ndarray, seed: int) -> Verdict:
    """Wrong is what a network trained on all given labels predicts otherwise."""
    one_hot = np.eye(len(task.class_names), dtype=np.float32)[given]
    data, rows = task.data(), np.arange(len(given))
    model = training.second_step(data, one_hot, task.settings, seed)
    probabilities = training.predict(model, data.inputs(rows))
    new = probabilities.argmax(axis=1)
    return Verdict(new != given, new, probabilities[rows, given])


def _out_of_sample(task: Task, given: np.ndarray, seed: int, settings: Settings) -> np.ndarray:
    return training.out_of_fold(task.data(), given, len(task.class_names), settings, seed)


def _regression(task: Task, given: np.ndarray) -> np.ndarray:
    regression = LogisticRegression(max_iter=1000)
    return cross_val_predict(regression, task.features, given, cv=5, method="predict_proba")


def _bayes(probabilities: np.ndarray, given: np.ndarray) -> Verdict:
    errors = find_label_errors(probabilities, given)
    return Verdict(errors.wrong, errors.new, errors.probability_given)


def _cleanlab(probabilities: np.ndarray, given: np.ndarray) -> Verdict:
    wrong = find_label_issues(given, probabilities)
    new = np.where(wrong, probabilities.argmax(axis=1), given)
    return Verdict(wrong, new, probabilities[np.arange(len(given)), given])


def methods(task: Task) -> dict[str, Callable[[Task, np.ndarray, int], Verdict]]:
    """What is compared, by name."""
    return {
        OURS: partial(ours, settings=task.settings),
        "ours, soft labels of eq. 9": partial(ours, settings=replace(task.settings, rule="soft")),
        "our decision, logistic regression": regression_with_our_decision,
        CLEANLAB: cleanlab_with_regression,
        "cleanlab, our network": cleanlab_with_our_network,
        "disagrees with a network": disagreement,
    }


OURS, CLEANLAB = "ours", "cleanlab, logistic regression"


def measure(task: Task, name: str, given: np.ndarray, seed: int) -> dict:
    """One method's scores and its seconds: by the clock, and of all processes it used."""
    clock, processors = time.perf_counter(), sum(os.times()[:4])
    verdict = methods(task)[name](task, given, seed)
    seconds = time.perf_counter() - clock, sum(os.times()[:4]) - processors
    bad = given != task.true
    found = int((verdict.wrong & bad).sum())
    regression = LogisticRegression(max_iter=1000).fit(task.features, verdict.new)
    return {
        "precision": found / max(int(verdict.wrong.sum()), 1),
        "recall": found / int(bad.sum()),
        "f1": 2 * found / int(verdict.wrong.sum() + bad.sum()),
        "average_precision": float(average_precision_score(bad, -verdict.probability_given)),
        "right_before": float(1 - bad.mean()),
        "right": float((verdict.new == task.true).mean()),
        "test": float(regression.score(task.test_features, task.test_true)),
        "seconds": seconds[0],
        "processor_seconds": seconds[1],
    }


def records(
    tasks: list[Task], seeds_: list[int], names: list[str], done: list[dict]
) -> Iterator[dict]:
    """One after the other; those in ``done`` are left out."""
    keys = ("task", "noise", "rate", "seed", "method")
    there = {tuple(record[key] for key in keys) for record in done}
    for position, seed in enumerate(seeds_):
        turn = position % len(names)
        for task in tasks:
            for kind, rate in NOISES:
                given = task.given(kind, rate, seed)
                for name in names[turn:] + names[:turn]:
                    key = (task.name, kind, rate, seed, name)
                    if key not in there:
                        found = measure(task, name, given, seed)
                        yield {**dict(zip(keys, key, strict=True)), **found}


def digits_task(kind: str) -> Task:
    """The digits: ``"digits, pixels"`` as features, or ``"digits, images"``."""
    data = digits.load()
    train, test = (
        images.reshape(len(images), -1).astype(np.float32) / 255
        for images in (data.train_images, data.test_images)
    )
    seen, settings = partial(FeatureSet, train), Settings()
    return Task(
        kind,
        seen,
        settings,
        train,
        data.train_labels,
        test,
        data.test_labels,
        data.class_names,
    )


def embeddings_task(file: Path) -> Task:
    """CIFAR-10 by embeddings. Raises UserError for a file with others."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            features = archive["features"].astype(np.float32)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"--features {file}: {error}, expected an .npz with 'features'") from None
    if features.ndim != 2 or len(features) != PER_CLASS * len(CIFAR10):
        raise UserError(f"--features {file}: shape {features.shape}, expected 50000 rows")
    by_class = features.reshape(len(CIFAR10), PER_CLASS, -1)
    train, test = (
        np.concatenate(by_class[:, rows]).astype(np.float32) for rows in (TRAINED_ON, TEST)
    )
    labels = [
        np.repeat(np.arange(len(CIFAR10), dtype=np.int32), len(part) // len(CIFAR10))
        for part in (train, test)
    ]
    return Task(
        "CIFAR-10, embeddings",
        partial(FeatureSet, train),
        Settings(),
        train,
        labels[0],
        test,
        labels[1],
        CIFAR10,
    )


COLUMNS = {
    "precision": ("precision", 100),
    "recall": ("recall", 100),
    "f1": ("F1", 100),
    "average_precision": ("average precision", 100),
    "right": ("labels right", 100),
    "test": ("test", 100),
    "seconds": ("seconds", 1),
    "processor_seconds": ("processor seconds", 1),
}


def markdown(result: dict) -> str:
    """Mean and standard deviation over seeds; the best mean of a block in bold."""
    lines = [
        "Wrong labels found and corrected: mean ± standard deviation over seeds, in percent; bold "
        "is the best of a block.",
        f"{result['machine']['processor']}, {result['threads']} thread(s), cleanlab "
        f"{result['versions']['cleanlab']}, scikit-learn {result['versions']['scikit-learn']}. "
        f"{result['note']}",
        "",
        f"    {result['command']}",
    ]
    blocks: dict[tuple, list[dict]] = {}
    for record in result["records"]:
        key = record["task"], record["noise"], record["rate"]
        blocks.setdefault(key, []).append(record)
    for (task, kind, rate), block in blocks.items():
        by_method: dict[str, list[dict]] = {}
        for record in block:
            by_method.setdefault(record["method"], []).append(record)
        right = np.mean([record["right_before"] for record in block])
        lines += [
            "",
            f"## {task}, {kind} {rate:g} ({100 * right:.1f} % right before)",
            "",
            "| | seeds | " + " | ".join(title for title, _ in COLUMNS.values()) + " |",
            "|---" * (len(COLUMNS) + 2) + "|",
        ]
        means = {
            name: {key: np.mean([record[key] for record in rows]) for key in COLUMNS}
            for name, rows in by_method.items()
        }
        for name in sorted(by_method, key=ORDER.index):
            cells = [str(len(by_method[name]))]
            for key, (_, factor) in COLUMNS.items():
                values = factor * np.array([record[key] for record in by_method[name]])
                best = (min if factor == 1 else max)(mean[key] for mean in means.values())
                text = f"{values.mean():.{2 if factor == 1 else 1}f}"
                if len(values) > 1:
                    text += f" ± {values.std(ddof=1):.{2 if factor == 1 else 1}f}"
                cells.append(f"**{text}**" if means[name][key] == best else text)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *summary(blocks), ""])


def summary(blocks: dict[tuple, list[dict]]) -> list[str]:
    """The method against cleanlab, pair by pair of one seed."""
    lines = [
        f"## {OURS} less {CLEANLAB}, by pairs of one seed",
        "",
        "| | F1 | labels right | seconds, ratio | processor seconds, ratio |",
        "|---|---|---|---|---|",
    ]
    for (task, kind, rate), block in blocks.items():
        sides = [
            {record["seed"]: record for record in block if record["method"] == name}
            for name in (OURS, CLEANLAB)
        ]
        common = sorted(sides[0].keys() & sides[1].keys())
        if not common:
            continue
        pairs = [(sides[0][seed], sides[1][seed]) for seed in common]
        cells = [
            f"{100 * np.mean([a[key] - b[key] for a, b in pairs]):+.1f} "
            f"(least {100 * min(a[key] - b[key] for a, b in pairs):+.1f})"
            for key in ("f1", "right")
        ]
        cells += [
            f"{np.median([a[key] / b[key] for a, b in pairs]):.2f}"
            for key in ("seconds", "processor_seconds")
        ]
        lines.append(f"| {task}, {kind} {rate:g} | " + " | ".join(cells) + " |")
    return lines


ORDER = list(methods(Task("", None, Settings(), *[None] * 4, ())))
TASKS = ("digits, pixels", "CIFAR-10, embeddings")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=Path, metavar="FILE", help="embeddings of CIFAR-10")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK")
    parser.add_argument("--methods", nargs="+", choices=ORDER, default=ORDER, metavar="METHOD")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--note", default="", help="about the machine, for the table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    return parser.parse_args(arguments)


def command(options: argparse.Namespace) -> str:
    """What was asked for, without the names of files."""
    words = ["--features", "FILE.npz"] if options.features else []
    for name, default in (("tasks", TASKS), ("methods", ORDER)):
        chosen = getattr(options, name)
        words += [] if list(chosen) == list(default) else [f"--{name}", *chosen]
    words += ["--seeds", *map(str, options.seeds), "--threads", str(options.threads)]
    return f"python benchmarks/label_errors.py {shlex.join(words)}"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        tasks = [digits_task(name) for name in TASKS[:1] if name in options.tasks]
        if options.features and TASKS[1] in options.tasks:
            tasks.append(embeddings_task(options.features))
        device = chainer.get_device("@numpy")
        provider = providers.choose(device)
        providers.use(provider)
        if provider is not None:
            provider.set_threads(options.threads)
        result = {
            "command": command(options),
            "note": options.note,
            "threads": options.threads,
            "machine": machine.describe(options.threads),
            "versions": {name: machine.version(name) for name in ("cleanlab", "scikit-learn")},
            "provenance": provenance(device, provider),
            "records": [],
        }
        if options.json and options.json.exists():
            before = files.read_json(options.json)
            if before["provenance"] == result["provenance"]:
                result["records"] = before["records"]
        with threadpool_limits(options.threads):
            for record in records(tasks, options.seeds, options.methods, list(result["records"])):
                result["records"].append(record)
                print(
                    f"{record['task']}, {record['noise']} {record['rate']:g}, seed "
                    f"{record['seed']}, {record['method']}: F1 {record['f1']:.3f}, right "
                    f"{record['right']:.3f}, {record['processor_seconds']:.2f} s",
                    flush=True,
                )
                if options.json:
                    files.write_json(options.json, result)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    text = markdown(result)
    print(text)
    if options.json:
        files.write_text(options.json.with_suffix(".md"), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
