"""Settings in which wrong labels are to be found: images by pixels or embeddings, and noise.

Settings of CIFAR-10 need embeddings: an array `features` (50000, d), class by class in the order of
sorted class names, of which rows 3,000 to 4,000 of each class are taken.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from chainer_jo import seeds
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method import noise

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


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """The tasks that are asked for. Raises UserError as `embeddings_tasks` does."""
    tasks = digits_tasks() + (embeddings_tasks(options.features) if options.features else [])
    return [task for task in tasks if not options.tasks or task.name in options.tasks]


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


def rare_errors_tasks(file: Path) -> list[Task]:
    """CIFAR-10 by embeddings with 0.5 to 3 % errors of four kinds that depend on the class alone.
    Raises UserError for a file with others."""
    by_class, taken, true = _embeddings(file)
    pairs = np.zeros((10, 10))
    for k, j in noise.transitions_of(CIFAR10).items():
        pairs[k, j] = 1
    scores = _weak_model(by_class).decision_function(taken[:, :16])
    confused = confusion_matrix(true, scores.argmax(axis=1))
    one_pair = np.zeros((10, 10))
    one_pair[CIFAR10.index("cat"), CIFAR10.index("dog")] = 1
    kinds = {
        "symmetric": np.ones((10, 10)),
        "the paper's pairs": pairs,
        "confusions of a weak model": confused,
        "cats called dogs": one_pair,
    }
    every = np.arange(len(true))

    def drawn(frequency: np.ndarray, rate: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels of which the share ``rate`` is wrong; pairs of true and given classes are as
        frequent as in ``frequency`` (c, c)."""
        rng, given = seeds.generator(seed, "noise"), true.copy()
        share = np.where(np.eye(10, dtype=bool), 0, frequency).ravel() / (
            frequency.sum() - np.trace(frequency)
        )
        classes, wrong = np.divmod(rng.choice(100, round(rate * len(true)), p=share), 10)
        for k in range(10):
            rows = rng.permutation(np.flatnonzero(true == k))
            given[rows[: (classes == k).sum()]] = wrong[classes == k]
        return every, given

    return [
        Task(f"{kind}, {100 * rate:g} %", taken, true, partial(drawn, frequency, rate))
        for kind, frequency in kinds.items()
        for rate in (0.005, 0.01, 0.02, 0.03)
    ]


def digits_tasks() -> list[Task]:
    data = digits.load()
    train = data.train.images.reshape(len(data.train.images), -1).astype(np.float32) / 255
    return paper_noise("digits", train, data.train.labels, data.class_names)


def _embeddings(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All embeddings (10, 5000, d) by class; those taken and their true classes, (n, d) and (n,).
    Raises UserError for a file with others."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            features = archive["features"].astype(np.float32)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"--features {file}: {error}, expected an .npz with 'features'") from None
    if features.ndim != 2 or len(features) != PER_CLASS * len(CIFAR10):
        raise UserError(f"--features {file}: shape {features.shape}, expected 50000 rows")
    by_class = features.reshape(len(CIFAR10), PER_CLASS, -1)
    taken = np.concatenate(by_class[:, TAKEN])
    return by_class, taken, np.repeat(np.arange(10, dtype=np.int32), len(taken) // 10)


def _weak_model(by_class: np.ndarray) -> LogisticRegression:
    """A model of the first 16 embeddings of a few images with true labels."""
    weak = LogisticRegression(max_iter=1000)
    return weak.fit(np.concatenate(by_class[:, OF_WEAK])[:, :16], np.repeat(np.arange(10), 50))


def embeddings_tasks(file: Path) -> list[Task]:
    """CIFAR-10 by embeddings. Raises UserError for a file with others."""
    by_class, taken, true = _embeddings(file)
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

    scores = _weak_model(by_class).decision_function(taken[:, :16])

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
