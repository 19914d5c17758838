"""A network that has been trained on corrected labels, with all that it takes to use it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import chainer
import numpy as np
from chainer import serializers

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.datasets import augmentation
from chainer_jo.datasets.decoding import decode
from chainer_jo.errors import UserError
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.links.resnet50 import ResNet50
from chainer_jo.relabel.feature_input import FeatureInput
from chainer_jo.relabel.feature_network import FeatureNetwork
from chainer_jo.training.streamed_images import Preparation

#: The file below the folder of results.
NAME = "model.npz"
#: Images per forward pass, and feature vectors.
IMAGES, VECTORS = 100, 10_000
CPU = chainer.get_device("@numpy")
_ABOUT, _WEIGHTS, _LOOK = "about", "weights/", "look/"


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network, its classes, and how its input has to look.

    Attributes
    ----------
    about : JSON values: ``classes``, names; and either ``features``, the length of feature
        vectors, with ``hidden`` units; or ``resize`` and ``crop`` in pixels, with ``units`` and
        ``widths`` of `PreActResNet` or the ``variant`` of `ResNet50`.
    weights : the network's arrays by Chainer's names.
    look : what is subtracted from input and what it is divided by, ``mean`` and ``scale``; empty
        for a network that knows itself.
    """

    about: dict
    weights: dict[str, np.ndarray]
    look: dict[str, np.ndarray]

    @classmethod
    def of(cls, about: dict, network: chainer.Link, look: dict[str, np.ndarray]) -> TrainedNetwork:
        """What there is to be kept of a network."""
        serializer = serializers.DictionarySerializer()
        serializer.save(network)
        return cls(about, serializer.target, look)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.about["classes"])

    def save(self, folder: Path) -> Path:
        """Writes ``model.npz``; returns its path."""
        arrays = {_ABOUT: np.array(json.dumps(self.about))}
        arrays |= {_WEIGHTS + name: array for name, array in self.weights.items()}
        arrays |= {_LOOK + name: array for name, array in self.look.items()}
        path = folder / NAME
        # Chainer's order is that of a set, another in every process.
        files.write(path, lambda file: np.savez(file, **dict(sorted(arrays.items()))))
        return path

    @classmethod
    def load(cls, folder: Path) -> TrainedNetwork:
        """What `save` wrote. Raises UserError if there is none, or it is damaged."""
        path = folder / NAME
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            about = json.loads(str(arrays.pop(_ABOUT)))
            loaded = cls(about, _below(_WEIGHTS, arrays), _below(_LOOK, arrays))
            loaded._network()  # fails on arrays that are not there
            return loaded
        except FileNotFoundError:
            what = f"no {NAME}" if folder.is_dir() else "no such folder"
            raise UserError(
                f"network {str(folder)!r}: {what}, "
                "expected the folder that chainer-jo relabel wrote"
            ) from None
        except files.NOT_AN_NPZ as error:
            raise UserError(
                f"network {str(path)!r}: {error}, expected the folder that chainer-jo relabel wrote"
            ) from None

    def of_images(self, paths: Sequence[str], device: chainer.backend.Device = CPU) -> np.ndarray:
        """Class probabilities (n, c) float32 of image files, in order, computed on a device.

        Raises UserError for an image that is missing or cannot be decoded.
        """
        resize, crop = self.about["resize"], self.about["crop"]
        network, parts = self._network(), []
        network.to_device(device)
        with ThreadPoolExecutor(usable_cores()) as pool:
            for part in _slices(len(paths), IMAGES):
                pixels = pool.map(lambda path: decode(path, resize, crop), paths[part])
                x = device.send(self._prepare(np.stack(list(pixels)), network))
                parts.append(_predict(network, x))
        return self._joined(parts)

    def of_features(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities (n, c) float32 of feature vectors (n, d)."""
        inputs = FeatureInput(features, self.look["mean"], float(self.look["scale"]))
        network = self._network()
        return self._joined(
            [_predict(network, inputs.plain(part)) for part in _slices(len(inputs), VECTORS)]
        )

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts or [np.zeros((0, len(self.class_names)), np.float32)])

    def _prepare(self, pixels: np.ndarray, network: chainer.Link) -> np.ndarray:
        """uint8 (b, h, w, 3) as the network wants them."""
        if "variant" not in self.about:
            return augmentation.normalise(pixels, self.look["mean"]).transpose(0, 3, 1, 2)
        variant = network.variant
        return Preparation(variant.mean, variant.std, variant.channels)(pixels)

    def _network(self) -> chainer.Link:
        network = _untrained(self.about)
        serializers.NpzDeserializer(self.weights).load(network)
        return network


def _predict(network: chainer.Link, x: np.ndarray) -> np.ndarray:
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        logits = network(x).array
        return CPU.send(chainer.functions.softmax(logits.astype(np.float32)).array)


def _untrained(about: dict) -> chainer.Link:
    classes = len(about["classes"])
    if "features" in about:
        return FeatureNetwork(about["features"], classes, about["hidden"])
    if "variant" in about:
        return ResNet50(classes, about["variant"])
    return PreActResNet(3, classes, about["units"], about["widths"])


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, length, size))
