"""Networks trained on corrected labels, whose probabilities are averaged, with their normalisation:
``model.npz``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import chainer
import numpy as np
from chainer import serializers

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.data.decoding import decode
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation
from chainer_jo.method.images import Preparation
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.resnet50 import ResNet50
from chainer_jo.relabel.judge.features import FeatureInput, FeatureNetwork
from chainer_jo.relabel.read.image_features import length_of
from chainer_jo.relabel.write.results_folder import MODEL

#: Images per forward pass.
IMAGES_PER_PASS = 100
CPU = chainer.get_device("@numpy")
#: Arrays of a file at most; three ResNet-50 have 801.
MAX_ARRAYS = 1000
_WRITTEN = "the folder that chainer-jo relabel wrote"
_ABOUT, _WEIGHTS, _NORMALISATION = "about", "weights/", "look/"


class Member(NamedTuple):
    """Weights and normalisation of one network.

    Attributes
    ----------
    weights : its arrays by Chainer's names.
    normalisation : ``mean`` of the input and its ``scale``, one number () or one for each feature
        (d,); empty for `ResNet50`, which has its own.
    """

    weights: dict[str, np.ndarray]
    normalisation: dict[str, np.ndarray]

    @classmethod
    def of(cls, network: chainer.Link, normalisation: dict[str, np.ndarray]) -> Member:
        """The arrays of a network and its normalisation."""
        return cls(serializers.npz.serialize(network), normalisation)


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """An ensemble of one network or more, its classes and the form of its input.

    Attributes
    ----------
    about : JSON values: ``classes``, names; and either ``features``, the length of feature
        vectors, and ``hidden`` units; or ``resize`` and ``crop`` in pixels, with ``units`` and
        ``widths`` of `PreActResNet` or the ``variant`` of `ResNet50`.
    members : networks whose probabilities are averaged.
    """

    about: dict
    members: Sequence[Member]

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(self.about["classes"])

    def save(self, folder: Path) -> Path:
        """Writes ``model.npz``; returns its path."""
        arrays: dict[str, Any] = {_ABOUT: np.array(json.dumps(self.about))}
        for i, (weights, normalisation) in enumerate(self.members):
            for kind, values in ((_WEIGHTS, weights), (_NORMALISATION, normalisation)):
                arrays |= {f"{i}/{kind}{name}": array for name, array in values.items()}
        path = folder / MODEL
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
            if len(arrays) > MAX_ARRAYS:
                raise ValueError(f"{len(arrays):,} arrays, expected {MAX_ARRAYS:,} at most")
            members: list[Member] = []
            while own := _below(f"{len(members)}/", arrays):
                members.append(Member(_below(_WEIGHTS, own), _below(_NORMALISATION, own)))
            if not members:
                raise KeyError("0/weights")
            _check(about, members)
            loaded = cls(about, members)
            loaded._check_blank()
            return loaded

    def _check_blank(self) -> None:
        """Raises any exception if the arrays do not fit the networks."""
        if "features" not in self.about:
            self._networks()  # fails on arrays that are not there
            return
        with np.errstate(all="ignore"):
            blank = self.of_features(np.zeros((1, self.about["features"]), np.float32))
        if blank.shape != (1, len(self.about["classes"])) or not np.isfinite(blank).all():
            raise ValueError(f"probabilities of a blank input: {blank.shape}, or not finite")

    def of_images(self, paths: Sequence[str], device: chainer.backend.Device = CPU) -> np.ndarray:
        """Class probabilities (n, c) float32 of image files, in order, computed on a device.

        Raises UserError for an image that is missing or cannot be decoded.
        """
        resize, crop = self.about["resize"], self.about["crop"]
        networks, parts = self._networks(), []
        for network in networks:
            network.to_device(device)
        with ThreadPoolExecutor(usable_cores()) as pool:
            for start in range(0, len(paths), IMAGES_PER_PASS):
                part = paths[start : start + IMAGES_PER_PASS]
                pixels = list(pool.map(lambda path: decode(path, resize, crop), part))
                inputs = (
                    self._prepare(np.stack(pixels), i, networks[i]) for i in range(len(networks))
                )
                parts.append(_mean(networks, map(device.send, inputs)))
        return np.concatenate(parts)

    def of_features(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities (n, c) float32 of feature vectors (n, d)."""
        inputs = (
            FeatureInput(features, **normalisation).values for _, normalisation in self.members
        )
        return _mean(self._networks(), inputs)

    def _prepare(self, pixels: np.ndarray, member: int, network: chainer.Link) -> np.ndarray:
        """Network input, normalised, of pixels uint8 (b, h, w, 3)."""
        if "variant" not in self.about:
            mean = self.members[member].normalisation["mean"]
            return augmentation.normalise(pixels, mean).transpose(0, 3, 1, 2)
        variant = network.variant
        return Preparation(variant.mean, variant.std, variant.channels)(pixels)

    def _networks(self) -> list[chainer.Link]:
        networks = [untrained(self.about) for _ in self.members]
        for network, (weights, _) in zip(networks, self.members, strict=True):
            serializers.NpzDeserializer(weights).load(network)
        return networks


def _mean(networks: Sequence[chainer.Link], inputs: Iterable[np.ndarray]) -> np.ndarray:
    """Mean probabilities of networks, each with its own input of the same images."""
    return np.mean([_predict(*each) for each in zip(networks, inputs, strict=True)], axis=0)


def _predict(network: chainer.Link, x: np.ndarray) -> np.ndarray:
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        logits = network(x).array
        return CPU.send(chainer.functions.softmax(logits.astype(np.float32)).array)


def untrained(about: dict) -> chainer.Link:
    """A network as `TrainedNetwork.about` describes, with random weights."""
    classes = len(about["classes"])
    if "features" in about:
        return FeatureNetwork(about["features"], classes, about["hidden"])
    if "variant" in about:
        return ResNet50(classes, about["variant"])
    return PreActResNet(3, classes, about["units"], about["widths"])


def _check(about: dict, members: Sequence[Member]) -> None:
    """Raises any exception for a description of networks with more numbers than the members have,
    or of other images than `relabel` sees; nothing has been built by it."""
    classes = about["classes"]
    if not (type(classes) is list and classes and all(map(files.is_utf8, classes))):
        raise ValueError(f"{len(classes)} classes, expected names in UTF-8")
    if "features" in about:
        length, hidden, seen = about["features"], about["hidden"], about.get("seen")
        numbers = min(sum(array.size for array in each.weights.values()) for each in members)
        whole = type(length) is type(hidden) is int and min(length, hidden) > 0
        if not whole or hidden * (length + len(classes)) > numbers:
            raise ValueError(f"{length!r} features, {hidden!r} units in {numbers:,} numbers")
        if seen is not None and (
            type(seen["side"]) is not int or length_of(seen["by"], seen["side"]) != length
        ):
            raise ValueError(f"{length} features of images, seen as {seen}")


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
