"""Labels that runs start from: final labels of a first step, pseudo labels (PL-CIFAR), once per
results folder and seed, and labels of people. All runs of a folder use the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo import files, seeds
from chainer_jo.data import cifar10n
from chainer_jo.data.digits import NAME as DIGITS
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method import noise
from chainer_jo.method.noisy_split import ImageSelection, as_used
from chainer_jo.method.pseudo_labels import pixel_features, pseudo_labels, read_features
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore


def labels_of(first_step: Experiment, store: RunStore, fingerprint: str) -> np.ndarray:
    """The soft labels (n, c) that a first step on data with this fingerprint ended with.

    Raises UserError if the first step has not finished, or was on other data.
    """
    result, labels = store.result(first_step), store.soft_labels(first_step)
    if result is None or result["state"] != "finished" or labels is None:
        raise UserError(f"labels of {first_step.id}: not there; the first step has to finish first")
    if result["data"] != fingerprint:
        raise UserError(
            f"labels of {first_step.id}: of data with fingerprint {result['data']}, these have "
            f"{fingerprint}; expected the same data; choose another --results folder"
        )
    return labels


def check_results(
    experiments: Sequence[Experiment], store: RunStore, data: LabelledData | None = None
) -> None:
    """Raises UserError for runs that finished on other data than these; None: on two data sets."""
    expected: dict[ImageSelection, str | None] = {}
    for experiment in experiments:
        if result := store.result(experiment):
            trained_on, used = result.get("data"), experiment.data
            if used not in expected:
                expected[used] = as_used(data, used).fingerprint() if data else trained_on
            if trained_on != expected[used]:
                raise UserError(
                    f"run {experiment.id} in {store.root}: of data with fingerprint {trained_on}, "
                    f"{'these' if data else 'others there'} have {expected[used]}; expected runs "
                    "on the same data alone, or another folder for the results"
                )


@dataclass(frozen=True)
class PseudoSource:
    """Source of the features that pseudo labels are clusters of: a file, a ResNet-50, or pixels of
    digits.

    Parameters
    ----------
    features : ``.npz`` with precomputed features of the training images, or None.
    weights : weights of an ImageNet ResNet-50, whose pool5 output is the paper's features, or None.
    device : where the ResNet-50 runs, as Chainer names it.
    """

    features: str | None = None
    weights: str | None = None
    device: str = "@numpy"

    def name(self, data_name: str) -> str | None:
        """Name of the features as a run records them: the file's name without its ending, and a
        digest of its content; None if this data set has none.

        Raises UserError if the file cannot be read.
        """
        if self.features:
            return _name_of(self.features)
        if self.weights:
            return f"resnet50-{_name_of(self.weights)}"
        return "pixels" if data_name == DIGITS else None

    def labels(self, data: LabelledData, name: str | None, seed: int, folder: Path) -> np.ndarray:
        """Labels (n,) int32 of all training images of ``data``, from ``folder`` if they are there
        already.

        ``name`` is the one in the run's description.

        Raises UserError if the features have changed since or cannot be read, or if the kept labels
        are damaged.
        """
        path = folder / "pseudo_labels" / f"{name}-{seed}.npz"
        of = f"{name}-{seed} {data.fingerprint()}"
        if not path.exists():
            current = self.name(data.name)
            if current != name:
                raise UserError(
                    f"features for pseudo labels: {current}, expected {name}, with which the run "
                    "is described; has the file been written again?"
                )
            labels = pseudo_labels(data, self._load(data), seeds.child(seed, "clusters"))
            files.check_unchanged("features for pseudo labels", name, self.name(data.name))
            files.save_arrays(path, of, labels=labels)
        with files.expected(
            path, "it as written; remove it, the features are then clustered again"
        ):
            return files.load_arrays(path, of)["labels"]

    def check(self, data: LabelledData) -> None:
        """Raises UserError for a file of features of other images than the training images of
        ``data``, before any run needs them."""
        if self.features:
            read_features(self.features, data)

    def _load(self, data: LabelledData) -> np.ndarray:
        if self.features:
            return read_features(self.features, data)
        if self.weights:
            from chainer_jo.method.resnet50_features import pool5_features

            return pool5_features(data.train.images, self.weights, device=self.device)
        return pixel_features(data)


def human_labels(file: str | None, data: LabelledData, kind: str, seed: int) -> np.ndarray:
    """Labels (n,) int32 of all training images of ``data`` under `HUMAN` noise, from a copy of
    CIFAR-10_human.pt. Raises UserError for other files, or images in another order."""
    origin, _, name = kind.partition("-")
    human = cifar10n.read(file or "(no file)", data.train.labels)[name]
    if origin == "human":
        return human
    matrix = noise.observed_matrix(data.train.labels, human, data.num_classes)
    return noise.by_class(data.train.labels, matrix, seeds.generator(seed, "noise"))


def _name_of(path: str) -> str:
    return f"{Path(path).stem}-{files.digest(path)}"
