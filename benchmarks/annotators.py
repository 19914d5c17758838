"""Labels of three people for each image: `relabel` of all labels, next to aggregation of labels.

    python benchmarks/annotators.py --features FILE.npz --data cifar-10-batches-py \\
        --labels CIFAR-10_human.pt --json FILE.json

`human_labels.py` reads the features and labels: 10,000 random training images of CIFAR-10 a seed,
and CIFAR-10N's random1 to random3. A second task makes the columns differ: 70 % of the errors
of the first are corrected, 30 % of the labels of the third are redrawn. All networks are trained on
the majority; ties are decided at random, by the same draw for all methods.
"""

from __future__ import annotations

import label_errors as given_features
import numpy as np
from human_labels import compare
from label_errors import CLEANLAB, RELABEL, Methods, SameNetworks, Verdict, crossed, verdict_of
from label_errors_page import Blocks, mean_of, table
from label_tasks import Task
from sklearn.base import BaseEstimator

from chainer_jo import seeds
from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate.label_errors import find_label_errors
from chainer_jo.relabel.estimate.label_noise import majority

IMAGES = 10_000
PEOPLE = "random1", "random2", "random3"
NETWORKS = SameNetworks()
CROWDLAB = f"{CLEANLAB}CROWDLAB, "
#: Columns of the page: labels correct.
RIGHT = (("right", "labels correct", 100, 2),)


def _verdict(votes: np.ndarray, probabilities: np.ndarray) -> Verdict:
    """Verdict of p(true), (n, c), on the majority of the labels of three people, (n, 3)."""
    given, new = majority(votes), probabilities.argmax(axis=1)
    return Verdict(new != given, new, probabilities[np.arange(len(given)), given])


def of_majority(features: np.ndarray, votes: np.ndarray, seed: int) -> Verdict:
    return _verdict(votes, np.eye(int(votes.max()) + 1)[majority(votes)])


def dawid_skene(features: np.ndarray, votes: np.ndarray, seed: int) -> Verdict:
    """A column of labels counts as one person: CIFAR-10N does not say who gave which label."""
    try:
        from crowdkit.aggregation import DawidSkene
        from pandas import DataFrame
    except ImportError:
        raise UserError("crowd-kit: not installed, expected the extra bench") from None
    (task, worker), label = np.indices(votes.shape).reshape(2, -1), votes.ravel()
    answers = DataFrame({"task": task, "worker": worker, "label": label})
    return _verdict(votes, DawidSkene().fit_predict_proba(answers).sort_index(axis=1).to_numpy())


def one_label(features: np.ndarray, votes: np.ndarray, seed: int) -> Verdict:
    given = majority(votes)
    return verdict_of(find_label_errors(given, NETWORKS(features, given, seed)))


def all_labels(features: np.ndarray, votes: np.ndarray, seed: int) -> Verdict:
    return verdict_of(find_label_errors(votes, NETWORKS(features, majority(votes), seed)))


def crowdlab(votes: np.ndarray, probabilities: np.ndarray) -> Verdict:
    try:
        from cleanlab.multiannotator import get_label_quality_multiannotator
    except ImportError:
        raise UserError("cleanlab: not installed, expected the extra bench") from None
    found = get_label_quality_multiannotator(votes, probabilities, verbose=False)["label_quality"]
    new = found["consensus_label"].to_numpy()
    return Verdict(new != majority(votes), new, found["consensus_quality_score"].to_numpy())


def regression(features: np.ndarray, votes: np.ndarray, seed: int) -> np.ndarray:
    model: BaseEstimator = given_features.scaled_regression()
    return crossed(model, features, majority(votes), seed)


METHODS: Methods = {
    "majority": of_majority,
    "crowd-kit, Dawid-Skene": dawid_skene,
    f"{CROWDLAB}scaled regression": lambda *what: crowdlab(what[1], regression(*what)),
    f"{CROWDLAB}relabel's networks": lambda x, votes, seed: crowdlab(
        votes, NETWORKS(x, majority(votes), seed)
    ),
    f"{RELABEL}, the majority": one_label,
    f"{RELABEL}, three labels": all_labels,
}


def people(features: np.ndarray, true: np.ndarray, labels: dict[str, np.ndarray]) -> list[Task]:
    """The labels as they are, and with columns that differ."""
    votes = np.stack([labels[name] for name in PEOPLE], axis=1)

    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rows = seeds.generator(seed, "split").permutation(len(true))[:IMAGES]
        return rows, votes[rows]

    def differing(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rows, changed = draw(seed)
        rng = seeds.generator(seed, "noise")
        corrected, redrawn = rng.random((2, IMAGES)) < [[0.7], [0.3]]
        changed[:, 0] = np.where(corrected, true[rows], changed[:, 0])
        changed[:, 2] = np.where(redrawn, rng.integers(true.max() + 1, size=IMAGES), changed[:, 2])
        return rows, changed

    return [
        Task("three people", features, true, draw),
        Task("three people who differ", features, true, differing),
    ]


def summary(blocks: Blocks) -> list[str]:
    """Label accuracy by seed."""
    lines = [
        f"{IMAGES:,} images of CIFAR-10 a seed by built-in features, with the labels of three "
        "people (CIFAR-10N, J. Wei et al., ICLR 2022, CC BY-NC 4.0); and with columns that differ: "
        "70 % of the errors of the first are corrected, 30 % of the labels of the third redrawn. "
        "Labels correct, by seed:",
    ]
    for task, block in blocks.items():
        numbers = [row["seed"] for row in next(iter(block.values()))]
        rows = [[task, *(f"seed {number}" for number in numbers), "mean"]]
        for name, records in block.items():
            shares = [*(row["right"] for row in records), mean_of(records, "right")]
            rows.append([name, *(f"{100 * share:.2f}" for share in shares)])
        lines += ["", *table(rows)]
    return lines


def main(arguments: list[str] | None = None) -> None:
    compare(__file__, people, METHODS, summary, RIGHT, arguments)


if __name__ == "__main__":
    main()
