"""Pseudo labels of PL-CIFAR (Sections 5.1 and 5.7): clusters of the training images' features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo import files
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.errors import UserError, one_line

#: Number of k-means++ runs, of which the tightest clustering is kept. On the stand-in features for
#: CIFAR-10 one run in five finds it; 30 miss it once in a thousand.
RESTARTS = 30


def pseudo_labels(
    data: LabelledData, features: np.ndarray, seed: np.random.SeedSequence, restarts: int = RESTARTS
) -> np.ndarray:
    """Pseudo labels (n,) int32 of the training images: k-means++ clusters of their features (n, d),
    one per class, matched to the classes for the best agreement with the true labels."""
    from sklearn.cluster import KMeans  # a second, for whoever imports this module

    # Elkan's bounds give the same clusters as Lloyd's passes, about three times as fast here.
    kmeans = KMeans(
        data.num_classes,
        init="k-means++",
        n_init=restarts,
        algorithm="elkan",
        random_state=int(seed.generate_state(1)[0]),
    )
    # On one thread: several would add up in an order, and so give labels, that vary.
    with threadpool_limits(1):
        clusters = kmeans.fit_predict(features)
    return name_clusters(clusters, data.train.labels, data.num_classes)


def name_clusters(clusters: np.ndarray, true_labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Labels (n,) int32: a one-to-one match of clusters and classes with the best agreement.

    >>> name_clusters(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]), 2)
    array([1, 1, 0, 0], dtype=int32)
    """
    agreement = np.zeros((num_classes, num_classes), np.int64)
    np.add.at(agreement, (clusters, true_labels), 1)
    from scipy.optimize import linear_sum_assignment

    _, class_of_cluster = linear_sum_assignment(agreement, maximize=True)
    return class_of_cluster[clusters].astype(np.int32)


def read_features(path: str | Path, data: LabelledData) -> np.ndarray:
    """Precomputed features of all training images, (n, d) float32, from an ``.npz``.

    The file has ``features`` (n, d), whose rows go class by class and, within a class, in the order
    of the data set.

    Raises UserError if the file cannot be read, has not one row of finite numbers per training
    image, or names its rows by ``paths``, which may be in another order.
    """
    try:
        arrays = files.arrays(path, ("features", "paths"))
        values = arrays["features"].astype(np.float32)
    except Exception as error:  # a damaged archive can raise anything
        raise UserError(
            f"features {path}: {one_line(error)}, expected an .npz with an array 'features' "
            "(images, dimensions)"
        ) from None
    n = len(data.train)
    if values.ndim != 2 or len(values) != n or not values.size:
        raise UserError(
            f"features {path}: shape {values.shape}, expected {n} rows, "
            f"one per training image of {data.name!r}"
        )
    if "paths" in arrays:
        raise UserError(f"features {path}: rows with 'paths', expected rows class by class alone")
    if not np.isfinite(values).all():
        raise UserError(f"features {path}: NaN or infinity, expected finite numbers")
    in_order = np.empty_like(values)
    in_order[np.argsort(data.train.labels, kind="stable")] = values
    return in_order


def pixel_features(data: LabelledData) -> np.ndarray:
    """Pixels as features, float32 in [0, 1]: enough for handwritten digits."""
    pixels = data.train.images.reshape(len(data.train), -1) / np.float32(255)
    return pixels.astype(np.float32)
