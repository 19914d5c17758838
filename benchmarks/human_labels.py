"""`relabel` on the labels that people gave to CIFAR-10's training images, next to cleanlab.

    chainer-jo features IMAGES --out FILE.npz
    python benchmarks/human_labels.py --features FILE.npz --data cifar-10-batches-py \\
        --labels CIFAR-10_human.pt --json FILE.json

IMAGES are the training images, whose paths sort in the order of CIFAR-10's Python batches. Every
label set has a twin: noise drawn by class with the transition matrix of the label set. All methods
see the same out-of-fold probabilities of `relabel`'s networks. The labels are CIFAR-10N's, licence
CC BY-NC 4.0; see `chainer_jo.data.cifar10n`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import label_errors as given_features
import numpy as np
from label_errors import CLEANLAB, RELABEL, Methods, SameNetworks
from label_errors_page import SCORES, Blocks, before, best_of, doubted, mean_of, percent, table
from label_tasks import Task

from chainer_jo import seeds
from chainer_jo.command_line import exit_codes
from chainer_jo.data import cifar10n, source
from chainer_jo.errors import UserError
from chainer_jo.method import noise
from chainer_jo.relabel.by_features import Axes

LABEL_SETS = "aggre", "random1", "worse"
NETWORKS = SameNetworks()
#: The default first.
FILTERS = ("prune_by_noise_rate", "prune_by_class", "both", "confident_learning")
FILTERS += ("predicted_neq_given", "low_normalized_margin", "low_self_confidence")
METHODS: Methods = {RELABEL: NETWORKS.relabel} | {
    f"{CLEANLAB}{rule}": NETWORKS.cleanlab(rule) for rule in FILTERS
}


def human_tasks(features: np.ndarray, true: np.ndarray, labels: dict[str, np.ndarray]) -> list:
    """A task for each label set, and one for its twin."""
    every, c = np.arange(len(true)), int(true.max()) + 1

    def twin(given: np.ndarray, seed: int) -> np.ndarray:
        transition = noise.observed_matrix(true, given, c)
        return noise.by_class(true, transition, seeds.generator(seed, "noise"))

    tasks = []
    for name, given in labels.items():
        tasks += [
            Task(name, features, true, lambda seed, g=given: (every, g)),
            Task(twin_of(name), features, true, lambda seed, g=given: (every, twin(g, seed))),
        ]
    return tasks


def twin_of(name: str) -> str:
    return f"{name}, drawn by class"


def read_features(file: Path, images: int) -> np.ndarray:
    """Features of `chainer-jo features`, sorted by path and projected as for the networks. Raises
    UserError for other files."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            features, paths = archive["features"], archive["paths"]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"--features {file}: {error}, expected one of chainer-jo features"
        ) from None
    if len(features) != images:
        raise UserError(f"--features {file}: {len(features):,} images, expected {images:,}")
    features = features[np.argsort(paths)]
    return Axes.of(features).project(features)


def summary(blocks: Blocks) -> list[str]:
    """Labels correct after `relabel`, and after cleanlab's default and best filter; what the errors
    of people cost, in F1."""
    right = [["", "before", "relabel", "cleanlab", "best filter", "", "doubted"]]
    found = [["F1", "relabel", "cleanlab", "best filter", ""]]
    for name, block in blocks.items():
        rules = [rule for rule in block if rule.startswith(CLEANLAB)]
        default = block[CLEANLAB + FILTERS[0]]
        best = max(rules, key=lambda rule: mean_of(block[rule], "right"))
        cells = [percent(rows, "right") for rows in (block[RELABEL], default, block[best])]
        words = best.removeprefix(CLEANLAB)
        right.append([name, f"{before(block):.1f}", *cells, words, doubted(block[RELABEL])])
        best = best_of(block, CLEANLAB)
        cells = [percent(rows, "f1") for rows in (block[RELABEL], default, block[best])]
        found.append([name, *cells, best.removeprefix(CLEANLAB)])
    return [
        "50,000 images by built-in features; labels of people (CIFAR-10N, J. Wei et al., ICLR 2022,"
        " CC BY-NC 4.0), and labels drawn by class with the same transition matrix. The true labels"
        " pick cleanlab's best filter. Labels correct, and runs that warn that the new labels may "
        "be no better:",
        "",
        *table(right),
        "",
        "F1 of finding the wrong labels:",
        "",
        *table(found),
    ]


def compare(
    file: str,
    tasks_of: Callable[[np.ndarray, np.ndarray, dict[str, np.ndarray]], list[Task]],
    methods: Methods,
    summary: Callable[[Blocks], list[str]],
    scores: Mapping[str, str],
    arguments: list[str] | None = None,
) -> None:
    """Command line of a benchmark on labels of people; ``tasks_of`` takes features, true labels and
    label sets."""
    parser = given_features.flags_of(list(methods))
    parser.set_defaults(seeds=[0, 1, 2])
    parser.add_argument("--data", required=True, metavar="CIFAR10", help="as for reproduce/")
    parser.add_argument("--labels", required=True, type=Path, metavar="FILE", help="of people")
    with exit_codes():
        options = parser.parse_args(arguments)
        if not options.features:
            raise UserError("--features: left out, expected a file of chainer-jo features")
        true = source.find(options.data).load().train.labels
        labels = cifar10n.read(options.labels, true)
        tasks = tasks_of(read_features(options.features, len(true)), true, labels)
        tasks = [task for task in tasks if not options.tasks or task.name in options.tasks]
        given_features.compare(options, Path(file).name, tasks, methods, summary, scores)


def main(arguments: list[str] | None = None) -> None:
    def tasks(features: np.ndarray, true: np.ndarray, labels: dict) -> list[Task]:
        return human_tasks(features, true, {name: labels[name] for name in LABEL_SETS})

    compare(__file__, tasks, METHODS, summary, SCORES, arguments)


if __name__ == "__main__":
    main()
