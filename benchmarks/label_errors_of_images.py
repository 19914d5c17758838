"""`chainer-jo relabel` without given features next to cleanlab with the features that it computes.

    python benchmarks/label_errors_of_images.py --features FILE.npz --data cifar-10-batches-py \\
        --json FILE.json

Settings, images, noise and seeds agree with `label_errors.py`. `--features` only decides which
labels are wrong; the methods see images as PNG files, of `--data` for CIFAR-10. Features are
computed before anything is timed.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import label_errors as given_features
import label_errors_page as page
import label_tasks
import numpy as np
from label_errors import CLEANLAB, RELABEL, Methods, Verdict
from label_errors_page import Blocks
from label_tasks import Task
from PIL import Image

from chainer_jo.command_line import exit_codes
from chainer_jo.data import digits, source
from chainer_jo.errors import UserError
from chainer_jo.relabel.by_features import Axes, ByFeatures
from chainer_jo.relabel.read import image_features, label_table
from chainer_jo.relabel.read.labelled_images import read_sets

PIXELS, BUILTIN, _ = FEATURES = "pixels", "builtin", "auto"


def corrector(chosen: str, paths: Sequence[str], given: np.ndarray, seed: int) -> ByFeatures:
    """`chainer-jo relabel --features CHOSEN` on a table of the images."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        label_table.write(table, {"path": paths, "label": [f"{k:02d}" for k in given]})
        table.flush()
        return ByFeatures(read_sets(table.name), chosen, seed=seed)


def relabel_by(chosen: str, paths: Sequence[str], given: np.ndarray, seed: int) -> Verdict:
    outcome = corrector(chosen, paths, given, seed).work()
    return given_features.verdict_of(outcome.labels.errors)._replace(choice=dict(outcome.choice))


@functools.cache
def features_of(chosen: str, paths: tuple[str, ...]) -> np.ndarray:
    """Computed features, projected as for the networks; they do not depend on the labels."""
    by = corrector(chosen, paths, np.arange(len(paths)) % 2, 0)
    features = image_features.compute(by.sets.train.files(), by.extractors[0])
    return Axes.of(features).project(features)


def on_computed(method: Callable[..., Verdict], chosen: str) -> Callable[..., Verdict]:
    return lambda paths, given, seed: method(features_of(chosen, tuple(paths)), given, seed)


METHODS: Methods = {
    f"{RELABEL}, {name}": functools.partial(relabel_by, name) for name in FEATURES
} | {
    f"{name}, {features}": on_computed(method, features)
    for name, method in given_features.METHODS.items()
    for features in (PIXELS, BUILTIN)
    if name.startswith(CLEANLAB)
}


def with_files(tasks: list[Task], images: np.ndarray, folder: Path) -> list[Task]:
    """Tasks whose features are the paths of image files, written to a folder."""
    folder.mkdir()
    files = [folder / f"{i:05d}.png" for i in range(len(images))]
    for file, image in zip(files, images.squeeze(), strict=True):
        Image.fromarray(image).save(file)
    return [replace(task, features=np.array(list(map(str, files)))) for task in tasks]


def cifar10_images(spec: str) -> np.ndarray:
    """The images that `embeddings_tasks` takes, in its order. Raises UserError for other data."""
    data = source.find(spec).load()
    if data.class_names != label_tasks.CIFAR10:
        raise UserError(f"--data {spec}: expected CIFAR-10")
    rows = [np.flatnonzero(data.train.labels == k) for k in range(data.num_classes)]
    return np.concatenate([data.train.images[of_class[label_tasks.TAKEN]] for of_class in rows])


def summary(blocks: Blocks) -> list[str]:
    """F1 and labels correct, by features; next to the method of cleanlab with the best F1."""
    found = [["F1", *FEATURES, "chosen", "cleanlab's best", "classifier and features"]]
    correct = [["labels correct", "before", *FEATURES, "cleanlab's best", "auto doubted"]]
    for task, block in blocks.items():
        ours = [block[f"{RELABEL}, {name}"] for name in FEATURES]
        best = page.best_of(block, CLEANLAB)
        f1, right = (
            [page.percent(rows, key) for rows in (*ours, block[best])] for key in ("f1", "right")
        )
        chosen = Counter(max(r["choice"], key=r["choice"].get).split()[0] for r in ours[-1])
        counts = ", ".join(f"{name} {count} of {len(ours[-1])}" for name, count in chosen.items())
        found.append([task, *f1[:3], counts, f1[3], best.removeprefix(CLEANLAB)])
        before = f"{page.before(block):.1f}"
        correct.append([task, before, *right, page.doubted(ours[-1])])
    return [
        "`relabel --features pixels`, `builtin` and `auto` (the default) next to the best of "
        "cleanlab's four classifiers on either features, picked by the true labels. F1:",
        "",
        *page.table(found),
        "",
        "Labels correct, and runs that warn that the new labels may be no better. `relabel`'s "
        "seconds below include reading the features and the network for `predict`:",
        "",
        *page.table(correct),
    ]


def main(arguments: list[str] | None = None) -> None:
    parser = given_features.flags_of(list(METHODS))
    parser.add_argument("--data", required=True, metavar="CIFAR10", help="as for reproduce/")
    with exit_codes(), tempfile.TemporaryDirectory() as name:
        options = parser.parse_args(arguments)
        tasks = label_tasks.tasks_of(options)
        ours = [task for task in tasks if task.name.startswith("digits")]
        theirs = [task for task in tasks if task not in ours]
        tasks = with_files(ours, digits.load().train.images, Path(name, "digits"))
        if theirs:
            tasks += with_files(theirs, cifar10_images(options.data), Path(name, "cifar10"))
        for task in tasks:
            for seed in options.seeds:
                for chosen in (PIXELS, BUILTIN):
                    features_of(chosen, tuple(task.features[task.draw(seed)[0]]))
        given_features.compare(options, Path(__file__).name, tasks, METHODS, summary)


if __name__ == "__main__":
    main()
