"""Network trained on corrected labels, with the normalisation of its input."""

from __future__ import annotations

from dataclasses import dataclass

import chainer
import numpy as np
from chainer import serializers

from chainer_jo import files
from chainer_jo.relabel.estimate.features import FeatureInput, FeatureNetwork


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A `FeatureNetwork`, its classes and the form of its input.

    Attributes
    ----------
    about : JSON values: ``classes``, names; ``features``, the length of feature vectors;
        ``hidden`` units; for computed features ``seen``, name and side of the `Extractor`.
    normalisation : ``mean`` (d,) of the features, and their ``scale``, () or (d,).
    """

    about: dict
    weights: dict[str, np.ndarray]
    normalisation: dict[str, np.ndarray]

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.about["classes"])

    @np.errstate(all="ignore")
    def of_features(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities (n, c) float32 of feature vectors (n, d). Raises ValueError for other
        weights than the network's; numbers too large for it give NaN."""
        about = self.about
        network = FeatureNetwork(about["features"], len(about["classes"]), about["hidden"])
        files.check_arrays(self.weights, serializers.npz.serialize(network))
        serializers.NpzDeserializer(self.weights).load(network)
        inputs = FeatureInput(features, **self.normalisation).values
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return chainer.functions.softmax(network(inputs)).array
