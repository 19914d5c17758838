"""Finds wrong labels with `chainer_jo.relabel`, with cleanlab, and by disagreement, side by side.

    python benchmarks/label_errors.py --features FILE.npz --json FILE.json

The data: the pixels of scikit-learn's digits; and, with --features, CIFAR-10 by embeddings: an
array `features` (50000, d), class by class in the order of sorted class names, of which rows 3,000
to 4,000 of each class are taken. All methods see the same features and labels; they take turns in
an order that changes with the seed. A Markdown table is written beside the JSON file, to which
records are added as they come: called again, what is there already, of the same commit, is not
computed again.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files, seeds  # noqa: E402  (before chainer)

# isort: split
import chainer  # noqa: E402
import machine  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.base import BaseEstimator  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402
from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from chainer_jo.data import digits  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.method import noise  # noqa: E402
from chainer_jo.relabel.judge import training  # noqa: E402
from chainer_jo.relabel.judge.features import FeatureSet  # noqa: E402
from chainer_jo.relabel.judge.label_errors import LabelErrors, find_label_errors  # noqa: E402
from chainer_jo.relabel.judge.training import Recipe  # noqa: E402
from chainer_jo.runs.provenance import provenance  # noqa: E402

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer")
CIFAR10 += ("dog", "frog", "horse", "ship", "truck")
#: Rows of each class of the embeddings, of which there are so many; and those that the weak model
#: behind errors that follow looks is trained on, with true labels.
PER_CLASS, TAKEN, OF_WEAK = 5000, slice(3000, 4000), slice(4500, 4550)


@dataclass(frozen=True, eq=False)
class Task:
    """n images and what is wrong with their labels.

    Attributes
    ----------
    features, true : float32 (n, d), and int (n,) of c classes.
    draw : gives, by a seed, which rows are used and their labels as given.
    """

    name: str
    features: np.ndarray
    true: np.ndarray
    draw: Callable[[int], tuple[np.ndarray, np.ndarray]]


class Verdict(NamedTuple):
    """Of n labels: which are wrong, what they become, the probability of the given one, whether it
    is said that they may be no better, and of several features the `Outcome.choice`."""

    wrong: np.ndarray
    new: np.ndarray
    probability_given: np.ndarray
    doubt: bool = False
    choice: dict[str, float] | None = None


def relabel(features: np.ndarray, given: np.ndarray, seed: int, **settings) -> Verdict:
    """The method, with near duplicates in one fold."""
    c = int(given.max()) + 1
    data = FeatureSet(features, given)
    return verdict_of(training.judge(data, given, range(c), Recipe(**settings), seed))


def decision_with_regression(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
    return verdict_of(
        find_label_errors(_crossed(scaled_regression(), features, given, seed), given)
    )


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
        return _cleanlab(_crossed(model(), features, given, seed), given)

    return method


def scaled_regression() -> BaseEstimator:
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))


def _crossed(
    model: BaseEstimator, features: np.ndarray, given: np.ndarray, seed: int
) -> np.ndarray:
    """In folds at random, as `relabel`'s: rows go class by class, those of the digits by writer."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    return cross_val_predict(model, features, given, cv=folds, method="predict_proba")


def verdict_of(errors: LabelErrors) -> Verdict:
    return Verdict(errors.wrong, errors.new, errors.probability_given, bool(errors.doubt))


def _cleanlab(probabilities: np.ndarray, given: np.ndarray) -> Verdict:
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise UserError("cleanlab: not installed, expected the extra bench") from None
    wrong = find_label_issues(given, probabilities, n_jobs=1)
    new = np.where(wrong, probabilities.argmax(axis=1), given)
    return Verdict(wrong, new, probabilities[np.arange(len(given)), given])


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


def paper_noise(name: str, features: np.ndarray, true: np.ndarray, class_names: tuple) -> list:
    """A task for each of the paper's noises."""

    def symmetric(rate: float) -> Callable:
        return lambda rng: noise.symmetric(true, rate, len(class_names), rng)

    def asymmetric(rate: float) -> Callable:
        pairs = noise.transitions_of(class_names)
        return lambda rng: noise.asymmetric(true, rate, pairs, rng)

    kinds = {f"symmetric {rate}": symmetric(rate) for rate in (0.2, 0.4, 0.6)}
    kinds |= {f"asymmetric {rate}": asymmetric(rate) for rate in (0.2, 0.4)}
    every = np.arange(len(true))

    def drawn(kind: Callable) -> Callable:
        return lambda seed: (every, kind(seeds.generator(seed, "noise")))

    return [Task(f"{name}, {kind}", features, true, drawn(draw)) for kind, draw in kinds.items()]


def digits_tasks() -> list[Task]:
    data = digits.load()
    train = data.train_images.reshape(len(data.train_images), -1).astype(np.float32) / 255
    return paper_noise("digits", train, data.true_labels, data.class_names)


def embeddings_tasks(file: Path) -> list[Task]:
    """CIFAR-10 by embeddings. Raises UserError for a file with others."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            features = archive["features"].astype(np.float32)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"--features {file}: {error}, expected an .npz with 'features'") from None
    if features.ndim != 2 or len(features) != PER_CLASS * len(CIFAR10):
        raise UserError(f"--features {file}: shape {features.shape}, expected 50000 rows")
    by_class = features.reshape(len(CIFAR10), PER_CLASS, -1)
    taken = np.concatenate(by_class[:, TAKEN])
    true = np.repeat(np.arange(10, dtype=np.int32), len(taken) // 10)
    every = np.arange(len(true))

    def redrawn(labels: np.ndarray, rate: float, classes: int, seed: int) -> np.ndarray:
        rng, labels = seeds.generator(seed, "noise"), labels.copy()
        chosen = rng.random(len(labels)) < rate
        labels[chosen] = rng.integers(0, classes, chosen.sum())
        return labels

    counts = np.geomspace(1000, 100, 6).astype(int)
    uneven = np.concatenate([np.flatnonzero(true == k)[:m] for k, m in enumerate(counts)])
    five = np.flatnonzero(np.isin(true, (2, 3, 4, 5, 6)))

    def cats_called_dogs(seed: int) -> tuple[np.ndarray, np.ndarray]:
        given, cats = true[five].copy(), np.flatnonzero(true[five] == 3)
        rng = seeds.generator(seed, "noise")
        given[rng.choice(cats, len(five) // 20, replace=False)] = 5
        return five, given - 2

    clusters = np.empty_like(true)
    for k in range(10):
        parts = KMeans(6, n_init=3, random_state=0).fit_predict(taken[true == k])
        clusters[true == k] = 6 * k + parts

    def sixty(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = seeds.generator(seed, "noise")
        rows = [rng.choice(np.flatnonzero(true == k), 20, replace=False) for k in (0, 3, 7)]
        given, wrong = np.repeat(np.arange(3), 20), rng.permutation(60)[:20]
        given[wrong] = (given[wrong] + rng.integers(1, 3, 20)) % 3
        return np.concatenate(rows), given

    weak = LogisticRegression(max_iter=1000)
    weak.fit(np.concatenate(by_class[:, OF_WEAK])[:, :16], np.repeat(np.arange(10), 50))
    scores = weak.decision_function(taken[:, :16])

    def by_looks(rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The images that the weak model, with noise in its scores, is least for get the label that
        it takes them for."""
        s = scores + seeds.generator(seed, "noise").gumbel(size=scores.shape)
        own = s[every, true]
        s[every, true] = -np.inf
        given, wrong = true.copy(), np.argsort(own - s.max(axis=1))[: round(rate * len(true))]
        given[wrong] = s[wrong].argmax(axis=1)
        return every, given

    three = np.searchsorted((0, 3, 7), true)
    return [
        *paper_noise("CIFAR-10", taken, true, CIFAR10),
        Task(
            "CIFAR-10, 6 classes 10:1, redrawn 0.4",
            taken,
            true,
            lambda seed: (uneven, redrawn(true[uneven], 0.4, 6, seed)),
        ),
        Task("CIFAR-10, 5 % are cats called dogs", taken, true - 2, cats_called_dogs),
        Task(
            "CIFAR-10, 60 classes, redrawn 0.31",
            taken,
            clusters,
            lambda seed: (every, redrawn(clusters, 0.31, 60, seed)),
        ),
        Task("CIFAR-10, 60 images of 3 classes, a third wrong", taken, three, sixty),
        Task("CIFAR-10, all right", taken, true, lambda seed: (every, true)),
        *(
            Task(f"CIFAR-10, by looks {rate}", taken, true, lambda seed, r=rate: by_looks(r, seed))
            for rate in (0.2, 0.4)
        ),
    ]


#: Columns of a setting's table: key of a record, title, factor, and decimals.
COLUMNS = (
    ("f1", "F1", 100, 1),
    ("precision", "precision", 100, 1),
    ("recall", "recall", 100, 1),
    ("average_precision", "average precision", 100, 1),
    ("right", "labels correct", 100, 1),
    ("processor_seconds", "processor seconds", 1, 2),
)
#: Records of each method by the name of the task, in order.
Blocks = dict[str, dict[str, list[dict]]]


def markdown(result: dict, summary: Callable[[Blocks], list[str]]) -> str:
    """A summary, and of every setting mean and standard deviation over seeds; the best mean of a
    setting in bold."""
    lines = [
        "Wrong labels found and corrected: mean ± standard deviation over seeds, in percent except "
        "for seconds; bold is the best of a setting.",
        f"{result['machine']['processor']}, {result['threads']} thread(s), cleanlab "
        f"{result['versions']['cleanlab']}, scikit-learn {result['versions']['scikit-learn']}. "
        f"{result['note']}",
        "",
        f"    {result['command']}",
    ]
    blocks: Blocks = {}
    for record in result["records"]:
        block = blocks.setdefault(record["task"], {})
        block.setdefault(record["method"], []).append(record)
    lines += ["", *summary(blocks)]
    for task, block in blocks.items():
        lines += ["", f"## {task} ({before(block):.1f} % of the labels correct before)", ""]
        lines += table([["", *(title for _, title, *_ in COLUMNS)], *_rows(block)])
    return "\n".join([*lines, ""])


def _rows(block: dict[str, list[dict]]) -> Iterator[list[str]]:
    for name, rows in block.items():
        cells = [name]
        for key, _, factor, decimals in COLUMNS:
            if (mean := mean_of(rows, key)) is None:
                cells.append("-")
                continue
            best = (min if key == "processor_seconds" else max)(
                mean_of(others, key) for others in block.values()
            )
            text = f"{factor * mean:.{decimals}f}"
            if len(rows) > 1:
                text += f" ± {factor * np.std([row[key] for row in rows], ddof=1):.{decimals}f}"
            cells.append(f"**{text}**" if mean == best else text)
        yield cells


def table(rows: list[list[str]]) -> list[str]:
    """A Markdown table, header first."""
    header, *rest = (f"| {' | '.join(cells)} |" for cells in rows)
    return [header, "|---" * len(rows[0]) + "|", *rest]


def summary(blocks: Blocks) -> list[str]:
    """The method next to that of cleanlab's which has the best mean F1; times seed by seed."""
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


def best_of(block: dict[str, list[dict]], prefix: str) -> str | None:
    """The method with the best mean F1, without wrong labels with the most correct ones, of those
    whose names begin so."""
    names = [name for name in block if name.startswith(prefix)]
    key = "right" if names and mean_of(block[names[0]], "f1") is None else "f1"
    return max(names, key=lambda name: mean_of(block[name], key), default=None)


def percent(rows: list[dict], key: str) -> str:
    return "-" if (mean := mean_of(rows, key)) is None else f"{100 * mean:.1f}"


def _shares(rows: list[dict]) -> tuple[str, str]:
    return percent(rows, "f1"), percent(rows, "right")


def doubted(rows: list[dict]) -> str:
    return f"{sum(row['doubt'] for row in rows)} of {len(rows)}"


def _ratio(ours: list[dict], theirs: list[dict] | None) -> str:
    # A process's seconds may be counted in hundredths.
    by_seed = {r["seed"]: max(r["processor_seconds"], 0.01) for r in theirs or []}
    ratios = [r["processor_seconds"] / by_seed[r["seed"]] for r in ours if r["seed"] in by_seed]
    return f"{np.median(ratios):.2f}" if ratios else "-"


def mean_of(rows: list[dict], key: str) -> float | None:
    return None if rows[0][key] is None else float(np.mean([row[key] for row in rows]))


def before(block: dict[str, list[dict]]) -> float:
    return 100 * float(np.mean([r["right_before"] for rows in block.values() for r in rows]))


def flags_of(names: list[str]) -> argparse.ArgumentParser:
    """Flags of a comparison of methods with these names."""
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
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


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """The tasks that are asked for. Raises UserError as `embeddings_tasks` does."""
    tasks = digits_tasks() + (embeddings_tasks(options.features) if options.features else [])
    return [task for task in tasks if not options.tasks or task.name in options.tasks]


def compare(
    options: argparse.Namespace,
    script: str,
    tasks: list[Task],
    methods: Methods,
    summary: Callable[[Blocks], list[str]],
) -> None:
    """Measures methods on tasks, and writes records and page."""
    same = {
        "threads": options.threads,
        "machine": machine.describe(options.threads),
        "versions": {name: machine.version(name) for name in ("cleanlab", "scikit-learn")},
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
    text = markdown(result, summary)
    print(text)
    if options.json:
        files.write_text(options.json.with_suffix(".md"), text)


def main(arguments: list[str] | None = None) -> int:
    options = flags_of(list(METHODS)).parse_args(arguments)
    try:
        compare(options, Path(__file__).name, tasks_of(options), METHODS, summary)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
