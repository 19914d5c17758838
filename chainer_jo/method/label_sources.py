"""Where the noisy labels of a run come from: drawn by a transition matrix (Section 5.1), as the
images come with them (Section 5.8), of people, or clustered from features (Sections 5.1 and 5.7).

A change gives other labels, and so changes every number; another source is an entry of `SOURCES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chainer_jo import files, seeds
from chainer_jo.data import cifar10n
from chainer_jo.data.digits import NAME as DIGITS
from chainer_jo.data.labelled_data import UNKNOWN, Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method import noise as models
from chainer_jo.method.pseudo_labels import pixel_features, pseudo_labels, read_features
from chainer_jo.method.registry import Registry


@dataclass(frozen=True)
class Noise:
    """Description of label noise: kind, one of `SOURCES`, and rate r; for pseudo labels (PL-CIFAR)
    the features that were clustered, for labels from a file the digest of the file."""

    kind: str = "none"
    rate: float = 0.0
    features: str | None = None
    label_file: str | None = None

    def __post_init__(self) -> None:
        models.RATES.check("noise rate", self.rate)
        if isinstance(self.source, Drawn) and self.rate == 0:
            object.__setattr__(self, "kind", "none")  # no noise is the same run, whatever its kind

    @property
    def source(self) -> LabelSource:
        """Source of the labels; UserError for an unknown kind."""
        return SOURCES[self.kind]

    @property
    def short(self) -> str:
        """Abbreviation in names of runs: ``sn30``, ``pl``, ``real``, ``clean``, ``human-worse``."""
        return self.source.short + (f"{100 * self.rate:g}" if self.rate else "")


@dataclass(frozen=True)
class LabelFiles:
    """Files that labels come from, as the flags of a script name them.

    Parameters
    ----------
    features : ``.npz`` with precomputed features of the training images, or None.
    weights : weights of an ImageNet ResNet-50, whose pool5 output is the paper's features, or None.
    device : where the ResNet-50 runs, as Chainer names it.
    people : CIFAR-10_human.pt, or None.
    results : results folder, in which pseudo labels are kept.
    """

    features: str | None = None
    weights: str | None = None
    device: str = "@numpy"
    people: str | None = None
    results: Path = Path()

    def features_of(self, data_name: str) -> str | None:
        """Name of the features as a run records them: the file's name without its ending, and a
        digest of its content; None if this data set has no features.

        Raises UserError if the file cannot be read.
        """
        if self.features:
            return _name_of(self.features)
        if self.weights:
            return f"resnet50-{_name_of(self.weights)}"
        return "pixels" if data_name == DIGITS else None


class LabelSource(ABC):
    """A source of noisy labels for clean data, by its name in `SOURCES`.

    Attributes
    ----------
    short : abbreviation in names of runs.
    noisy_validation : True if the validation images have labels of the source, not true ones.
    with_images : True if the data set comes with the labels; their distribution is the prior p.
    """

    short: str
    noisy_validation = False
    with_images = False

    def describe(self, kind: str, rate: float, features: str | None) -> Noise:
        """Description of the labels of a run. ``features`` is the name of the features that pseudo
        labels are clustered from. Raises UserError if the source needs something that is missing.
        """
        return Noise(kind, rate)

    def check(self, data: LabelledData, given: LabelFiles) -> None:
        """Raises UserError for files that do not fit the data, before any run needs them."""
        return None

    @abstractmethod
    def labels(
        self, data: LabelledData, rows: np.ndarray, noise: Noise, seed: int, given: LabelFiles
    ) -> np.ndarray:
        """Noisy labels (m,) int32 of the training images ``rows`` (m,) of clean ``data``, whole, in
        a run with this description and seed."""

    def transition(self, noise: Noise, train: Labelled, classes: Sequence[str]) -> np.ndarray:
        """True T (c, c) float64, T_ij = p(noisy j | true i), for Forward and CNN-CRF: by default
        the frequencies among the training images of a run with a known true label. Raises UserError
        if a class has no such image."""
        known = train.take(np.flatnonzero(train.true_labels != UNKNOWN))
        if len(np.unique(known.true_labels)) < len(classes):
            raise UserError(
                f"noise {noise.kind!r}: T is not known, expected images of every class with a "
                "known true label, or methods without T"
            )
        return models.observed_matrix(known.true_labels, known.labels, len(classes))

    def kept(self, noise: Noise, seed: int, results: Path) -> Path | None:
        """File of a results folder in which the labels are kept, if they are."""
        return None


@dataclass(frozen=True)
class Drawn(LabelSource):
    """Labels drawn at a rate r in [0, 1] from the true ones, by a transition matrix.

    Parameters
    ----------
    short : abbreviation in names of runs: ``sn`` as in ``sn30``.
    draw : (true labels (n,) int32, r, class names, generator) to noisy labels (n,) int32.
    matrix : (r, class names) to T float64 (c, c).
    """

    short: str
    draw: Callable[[np.ndarray, float, Sequence[str], np.random.Generator], np.ndarray]
    matrix: Callable[[float, Sequence[str]], np.ndarray]

    def labels(self, data, rows, noise, seed, given):
        rng = seeds.generator(seed, "noise")
        return self.draw(data.train.labels[rows], noise.rate, data.class_names, rng)

    def transition(self, noise, train, classes):
        return self.matrix(noise.rate, classes)


@dataclass(frozen=True)
class AsTheyCome(LabelSource):
    """Labels that the images come with: true ones, or noisy ones (Clothing1M)."""

    short: str
    with_images: bool = False

    def labels(self, data, rows, noise, seed, given):
        return data.train.labels[rows]


@dataclass(frozen=True)
class OfPeople(LabelSource):
    """Labels that people gave to CIFAR-10 (CIFAR-10N), or the same noise drawn by class, with the T
    of these labels. Validation images have them, too."""

    short: str
    label_set: str
    by_class: bool

    noisy_validation = True

    def describe(self, kind, rate, features):
        return Noise(kind, rate, label_file=cifar10n.SHA256[:16])

    def check(self, data, given):
        cifar10n.read(given.people or "(no file)", data.train.true_labels)

    def labels(self, data, rows, noise, seed, given):
        true = data.train.true_labels
        human = cifar10n.read(given.people or "(no file)", true)[self.label_set]
        if self.by_class:
            matrix = models.observed_matrix(true, human, data.num_classes)
            human = models.by_class(true, matrix, seeds.generator(seed, "noise"))
        return human[rows]


class Clustered(LabelSource):
    """Pseudo labels (PL-CIFAR): clusters of the features of a file, of a ResNet-50, or of pixels of
    digits, made once per results folder and seed."""

    short = "pl"

    def describe(self, kind, rate, features):
        if not features:
            raise UserError(
                "pseudo labels: no features, expected --resnet50-weights FILE "
                "(Chainer's .npz, or a .safetensors with torchvision's names) "
                "or --features FILE.npz"
            )
        return Noise(kind, rate, features)

    def check(self, data, given):
        if given.features:
            read_features(given.features, data)

    def labels(self, data, rows, noise, seed, given):
        """Raises UserError if the features have changed since the run was described or cannot be
        read, or if the kept labels are damaged."""
        path, name = self.kept(noise, seed, given.results), noise.features
        of = f"{name}-{seed} {data.fingerprint()}"
        if not path.exists():
            current = given.features_of(data.name)
            if current != name:
                raise UserError(
                    f"features for pseudo labels: {current}, expected {name}, with which the run "
                    "is described; has the file been written again?"
                )
            labels = pseudo_labels(data, _features(data, given), seeds.child(seed, "clusters"))
            again = given.features_of(data.name)
            files.check_unchanged("features for pseudo labels", name, again)
            files.save_arrays(path, of, labels=labels)
        with files.expected(
            path, "it as written; remove it, the features are then clustered again"
        ):
            return files.load_arrays(path, of)["labels"][rows]

    def kept(self, noise: Noise, seed: int, results: Path) -> Path:
        return results / "pseudo_labels" / f"{noise.features}-{seed}.npz"


def _features(data: LabelledData, given: LabelFiles) -> np.ndarray:
    if given.features:
        return read_features(given.features, data)
    if given.weights:
        from chainer_jo.method.resnet50_features import pool5_features

        return pool5_features(data.train.images, given.weights, device=given.device)
    return pixel_features(data)


def _name_of(path: str) -> str:
    return f"{Path(path).stem}-{files.digest(path)}"


#: Sources of labels by name, the kind of the noise.
SOURCES: Registry[LabelSource] = Registry("noise")
SOURCES |= {
    "none": AsTheyCome("clean"),
    "symmetric": Drawn(
        "sn",
        lambda labels, rate, names, rng: models.symmetric(labels, rate, len(names), rng),
        lambda rate, names: models.transition_matrix(rate, len(names)),
    ),
    "asymmetric": Drawn(
        "an",
        lambda labels, rate, names, rng: models.asymmetric(
            labels, rate, models.transitions_of(names), rng
        ),
        lambda rate, names: models.transition_matrix(
            rate, len(names), models.transitions_of(names)
        ),
    ),
    "pseudo": Clustered(),
    "real": AsTheyCome("real", with_images=True),
    **{f"human-{name}": OfPeople(f"human-{name}", name, False) for name in cifar10n.LABEL_SETS},
    **{f"drawn-{name}": OfPeople(f"drawn-{name}", name, True) for name in cifar10n.LABEL_SETS},
}
