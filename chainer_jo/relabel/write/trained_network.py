"""Network trained on corrected labels, with the normalisation of its input: ``model.npz``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chainer
import numpy as np
from chainer import serializers

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.relabel.judge.features import FeatureInput, FeatureNetwork
from chainer_jo.relabel.read.image_features import BY_NAME, LITE0_SIDE, PIXELS_SIDE
from chainer_jo.relabel.write.results_folder import MODEL

_WRITTEN = "the folder that chainer-jo relabel wrote"
_ABOUT, _WEIGHTS, _NORMALISATION = "about", "weights/", "normalisation/"
#: Sides of images that a file may ask for, in pixels.
SIDES = {*range(1, PIXELS_SIDE + 1), LITE0_SIDE}
#: Prefixes of arrays in files of earlier versions.
_EARLIER = {f"0/{_WEIGHTS}": _WEIGHTS, "0/look/": _NORMALISATION}


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

    def save(self, folder: Path) -> Path:
        """Writes ``model.npz``; returns its path."""
        path = folder / MODEL
        arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(self.about))}
        for kind, values in ((_WEIGHTS, self.weights), (_NORMALISATION, self.normalisation)):
            arrays |= {f"{kind}{name}": array for name, array in values.items()}
        # Chainer's order is a set's, another in every process.
        files.write(path, lambda file: np.savez(file, **dict(sorted(arrays.items()))))
        return path

    @classmethod
    def load(cls, folder: Path) -> TrainedNetwork:
        """Reads the file of `save`. Raises UserError if it is missing or damaged."""
        path = folder / MODEL
        if not path.exists():
            missing = f"no {MODEL}" if folder.is_dir() else "no such folder"
            raise UserError(f"network {str(folder)!r}: {missing}, expected {_WRITTEN}")
        with files.expected(path, _WRITTEN):
            arrays = files.arrays(path)
            about = json.loads(str(arrays.pop(_ABOUT)))
            for before, now in _EARLIER.items():
                arrays |= {f"{now}{name}": a for name, a in _below(before, arrays).items()}
            loaded = cls(about, _below(_WEIGHTS, arrays), _below(_NORMALISATION, arrays))
            loaded._check()
            return loaded

    def _check(self) -> None:
        """Raises any exception unless `about` fits the arrays, whose shapes bound what is built."""
        about, weights = self.about, self.weights
        if not (isinstance(about["classes"], list) and all(map(files.is_utf8, about["classes"]))):
            raise ValueError("classes, expected names in UTF-8")
        shapes = (len(about["classes"]), about["hidden"]), (about["hidden"], about["features"])
        if shapes != (weights["dense/W"].shape, weights["hidden/W"].shape):
            raise ValueError(f"weights of other shapes than {shapes}")
        if (seen := about.get("seen")) is not None:
            known = type(seen["side"]) is int and seen["side"] in SIDES
            if not known or BY_NAME[seen["by"]](seen["side"]).length != about["features"]:
                raise ValueError(f"features {seen}")
        with np.errstate(all="ignore"):
            blank = self.of_features(np.zeros((1, about["features"]), np.float32))
        if blank.shape != (1, shapes[0][0]) or not np.isfinite(blank).all():
            raise ValueError(f"probabilities of a blank input: {blank.shape}, or not finite")

    def of_features(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities (n, c) float32 of feature vectors (n, d)."""
        about = self.about
        network = FeatureNetwork(about["features"], len(about["classes"]), about["hidden"])
        serializers.NpzDeserializer(self.weights).load(network)
        inputs = FeatureInput(features, **self.normalisation).values
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return chainer.functions.softmax(network(inputs)).array


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = (name for name in arrays if name.startswith(prefix))
    return {name.removeprefix(prefix): arrays[name] for name in found}
