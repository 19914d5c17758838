"""File of the network trained on corrected labels: ``model.npz``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.relabel.read.image_features import EXTRACTORS, LITE0_SIDE, PIXELS_SIDE
from chainer_jo.relabel.write.results_folder import MODEL

_WRITTEN = "the folder that chainer-jo relabel wrote"
_ABOUT, _WEIGHTS, _NORMALISATION = "about", "weights/", "normalisation/"
#: Sides of images that a file may ask for, in pixels.
SIDES = {*range(1, PIXELS_SIDE + 1), LITE0_SIDE}


def save(network: TrainedNetwork, folder: Path) -> Path:
    """Writes ``model.npz``; returns its path."""
    path = folder / MODEL
    arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(network.about))}
    for kind, values in ((_WEIGHTS, network.weights), (_NORMALISATION, network.normalisation)):
        arrays |= {f"{kind}{name}": array for name, array in values.items()}
    # Chainer's order is a set's, another in every process.
    files.write(path, lambda file: np.savez(file, **dict(sorted(arrays.items()))))
    return path


def load(folder: Path) -> TrainedNetwork:
    """Reads the file of `save`. Raises UserError if it is missing or damaged."""
    path = folder / MODEL
    if not path.exists():
        missing = f"no {MODEL}" if folder.is_dir() else "no such folder"
        raise UserError(f"network {str(folder)!r}: {missing}, expected {_WRITTEN}")
    with files.expected(path, _WRITTEN):
        arrays = files.arrays(path)
        about = json.loads(str(arrays.pop(_ABOUT)))
        network = TrainedNetwork(about, _below(_WEIGHTS, arrays), _below(_NORMALISATION, arrays))
        _check(network)
        return network


def _check(network: TrainedNetwork) -> None:
    """Raises any exception unless ``about`` fits the arrays, whose shapes bound what is built."""
    about, weights = network.about, network.weights
    if not (isinstance(about["classes"], list) and all(map(files.is_utf8, about["classes"]))):
        raise ValueError("classes, expected names in UTF-8")
    shapes = (len(about["classes"]), about["hidden"]), (about["hidden"], about["features"])
    if shapes != (weights["dense/W"].shape, weights["hidden/W"].shape):
        raise ValueError(f"weights of other shapes than {shapes}")
    if (seen := about.get("seen")) is not None:
        known = type(seen["side"]) is int and seen["side"] in SIDES
        if not known or EXTRACTORS[seen["by"]](seen["side"]).length != about["features"]:
            raise ValueError(f"features {seen}")
    blank = network.of_features(np.zeros((1, about["features"]), np.float32))
    if blank.shape != (1, shapes[0][0]) or not np.isfinite(blank).all():
        raise ValueError(f"probabilities of a blank input: {blank.shape}, or not finite")


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = (name for name in arrays if name.startswith(prefix))
    return {name.removeprefix(prefix): arrays[name] for name in found}
