"""PL-CIFAR (Sections 5.1 and 5.7): labels from clustering features of the training images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo import files
from chainer_jo.datasets.image_data import ImageData
from chainer_jo.errors import UserError

#: Runs of k-means++ from different centres, of which the tightest clustering is kept. On the
#: stand-in features for CIFAR-10 one run in five ends there; 30 miss it once in a thousand.
RESTARTS = 30


@dataclass(frozen=True, eq=False)
class Features:
    """Features of the training images, to be clustered.

    Attributes
    ----------
    values : (n, d) float32, row i for training image i.
    source : where they come from, in words, for captions and logs.
    stand_in : whether they are others than the paper's, the pool5 output of a ResNet-50.
    """

    values: np.ndarray
    source: str
    stand_in: bool


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """Labels (n,) int32, the share of them that is right, and what they were computed from."""

    labels: np.ndarray
    accuracy: float
    description: str


def pseudo_labels(
    data: ImageData,
    features: Features,
    seed: np.random.SeedSequence,
    restarts: int = RESTARTS,
) -> PseudoLabels:
    """One cluster per class by k-means++, named so as to agree best with the true labels.

    Parameters
    ----------
    data : its training part is labelled.
    features : of the training images.
    seed : of the centres that k-means++ starts from.
    restarts : runs of k-means++, of which the tightest is kept.

    Raises
    ------
    UserError
        if there is not one row per training image.
    """
    _check_rows(features.values, data, features.source)
    # Elkan's bounds give the same clusters as Lloyd's passes, about three times as fast here.
    from sklearn.cluster import KMeans  # a second, for whoever imports this module

    kmeans = KMeans(
        data.num_classes,
        init="k-means++",
        n_init=restarts,
        algorithm="elkan",
        random_state=int(seed.generate_state(1)[0]),
    )
    # On one thread: several would add up in an order, and so give labels, that vary.
    with threadpool_limits(1):
        clusters = kmeans.fit_predict(features.values)
    labels = name_clusters(clusters, data.train_labels, data.num_classes)
    kind = "stand-in features: " if features.stand_in else ""
    return PseudoLabels(
        labels=labels,
        accuracy=float((labels == data.train_labels).mean()),
        description=f"k-means++ on {kind}{features.source}",
    )


def name_clusters(clusters: np.ndarray, true_labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Labels (n,) int32: each cluster gets one class, all different, for the best agreement."""
    agreement = np.zeros((num_classes, num_classes), np.int64)
    np.add.at(agreement, (clusters, true_labels), 1)
    from scipy.optimize import linear_sum_assignment

    _, class_of_cluster = linear_sum_assignment(agreement, maximize=True)
    return class_of_cluster[clusters].astype(np.int32)


def read_features(path: str | Path, data: ImageData) -> Features:
    """Precomputed stand-in features of all training images, from an ``.npz``.

    The file has ``features`` (n, d), whose rows go class by class and, within a class, in the order
    of the data set, and perhaps ``source``, a text that says what they are.

    Raises
    ------
    UserError
        if the file cannot be read, or there is not one row of finite numbers per training image.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            values = file["features"].astype(np.float32)
            source = str(file["source"]) if "source" in file.files else path.name
    except files.NOT_AN_NPZ as error:
        raise UserError(
            f"features {path}: {error}, expected an .npz with an array 'features' "
            "(images, dimensions)"
        ) from None
    _check_rows(values, data, str(path))
    if not np.isfinite(values).all():
        raise UserError(f"features {path}: some are not finite, expected numbers")
    in_order = np.empty_like(values)
    in_order[np.argsort(data.train_labels, kind="stable")] = values
    return Features(in_order, f"{source}, {values.shape[1]} dimensions", stand_in=True)


def _check_rows(values: np.ndarray, data: ImageData, where: str) -> None:
    n = len(data.train_images)
    if values.ndim != 2 or len(values) != n:
        raise UserError(
            f"features {where}: shape {values.shape}, expected {n} rows, "
            f"one per training image of {data.name!r}"
        )


def pixel_features(data: ImageData) -> Features:
    """The training images themselves, in [0, 1]: enough for handwritten digits."""
    pixels = data.train_images.reshape(len(data.train_images), -1) / np.float32(255)
    return Features(pixels.astype(np.float32), "the pixels", stand_in=False)
