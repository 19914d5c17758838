"""The data of a run: training and validation split, noisy labels (Section 5.1), class prior p."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chainer_jo import seeds
from chainer_jo.data import cifar10n
from chainer_jo.data.decoding import decode
from chainer_jo.data.labelled_data import Labelled, LabelledData, check_labels, described
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation, noise
from chainer_jo.method.accuracy import accuracy

#: Number of images on disk that the mean colour is estimated from.
MEAN_COLOUR_IMAGES = 500
#: Fraction of the training images that is held out for validation (Section 5.1).
VALIDATION_FRACTION = 0.1
#: Noise of a label set that people gave (CIFAR-10N), and noise drawn by class with its T.
HUMAN = tuple(f"{origin}-{name}" for origin in ("human", "drawn") for name in cifar10n.LABEL_SETS)
#: Kinds of noise that are not injected into true labels; injected ones are in `noise.MODELS`.
NOISE_KINDS = ("none", "pseudo", "real", *HUMAN)


@dataclass(frozen=True)
class ImageSelection:
    """Images of a run: the data set ``name``, or the first ``train_per_class`` and
    ``test_per_class`` images of every class.

    Images of various sizes are resized to ``resize`` x ``resize`` pixels and cropped to the middle
    ``crop`` x ``crop`` (Section 5.2). Images of one size may be shrunk: ``shrink`` x ``shrink``
    pixels become their mean.
    """

    name: str
    train_per_class: int | None = None
    test_per_class: int | None = None
    resize: int | None = None
    crop: int | None = None
    shrink: int | None = None

    @property
    def square(self) -> tuple[int, int]:
        """``resize`` and ``crop``; ValueError if all images have one size."""
        if self.resize is None or self.crop is None:
            raise ValueError(f"data set {self.name!r}: no size to resize to, expected two")
        return self.resize, self.crop


@dataclass(frozen=True)
class Noise:
    """Label noise: kind and rate r; for pseudo labels (PL-CIFAR) the features that were clustered,
    for labels of people (CIFAR-10N) the digest of their file.

    The kind ``real`` is the noise of labels that come with the images (Clothing1M).
    """

    kind: str = "none"
    rate: float = 0.0
    features: str | None = None
    label_file: str | None = None

    def __post_init__(self) -> None:
        kinds = (*NOISE_KINDS, *noise.MODELS)
        if self.kind not in kinds:
            raise UserError(f"noise {self.kind!r}: expected one of {', '.join(kinds)}")
        noise.RATES.check("noise rate", self.rate)
        if self.rate == 0 and self.kind in noise.MODELS:
            object.__setattr__(self, "kind", "none")  # no noise is the same run, whatever its kind

    @property
    def short(self) -> str:
        """Abbreviation in names of runs: ``sn30``, ``pl``, ``real``, ``clean``, ``human-worse``."""
        names = {kind: kind for kind in NOISE_KINDS} | {"none": "clean", "pseudo": "pl"}
        name = names.get(self.kind) or noise.MODELS[self.kind].short
        return name + (f"{100 * self.rate:g}" if self.rate else "")


class NoisySplit:
    """Training, validation and test images of one run, their noisy labels, and the prior p.

    Parameters
    ----------
    selection : images to use.
    label_noise : noise to inject.
    seed : seed of the trial, for split and noise.
    data : clean, to be split and made noisy, or, for ``real`` noise, with noisy labels.
    given_labels : returns labels (N,) of all training images of the data set: pseudo labels
        (PL-CIFAR), or ``HUMAN`` ones, which the validation images have as well.

    Attributes
    ----------
    train : training images, `Labelled` with the noisy labels.
    evaluation_sets : ``validation`` and, if there is one, ``test``, `Labelled`.
    root : folder of images on disk.
    prior : p, float32 (c,).
    noisy_labels_right : accuracy of the noisy labels; None without known true labels.
    fingerprint : digest of the images used and their labels.

    Raises UserError if the data set is another one than the description names, or is too small for
    it.
    """

    def __init__(
        self,
        selection: ImageSelection,
        label_noise: Noise,
        seed: int,
        data: LabelledData,
        given_labels: Callable[[], np.ndarray] | None = None,
    ) -> None:
        if data.name != selection.name:
            raise UserError(f"data set {data.name!r}: this run needs {selection.name!r}")
        self.selection = selection
        self.label_noise = label_noise
        used = as_used(data, selection)
        self.fingerprint = used.fingerprint()
        given, wanted = None, label_noise.kind in ("pseudo", *HUMAN)
        if given_labels and wanted and data.is_clean:
            given = given_labels()[data.first("train", selection.train_per_class)]
        sets = _split_with_noise(used, label_noise, seed, given) if used.is_clean else used
        self.class_names = sets.class_names
        self.num_classes = sets.num_classes
        self.root = sets.root
        self.evaluation_sets = sets.sets
        self.train = self.evaluation_sets.pop("train")
        uniform = np.full(self.num_classes, 1 / self.num_classes, np.float32)  # Section 5.2
        self.prior = _frequencies(sets) if label_noise.kind == "real" else uniform
        self.noisy_labels_right = accuracy(sets.train.labels, sets.train.true_labels)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean to subtract (Section 5.2): the mean training image, float32 (h, w, c) in [0, 1], or
        for images on disk the mean colour, float64 (3,) in [0, 255]."""
        images = self.train.images
        if not self.train.on_disk:
            return augmentation.mean_image(images)
        paths = (f"{self.root}/{key}" for key in images[:MEAN_COLOUR_IMAGES])
        return np.mean([decode(path, *self.selection.square) for path in paths], axis=(0, 1, 2))

    @property
    def transition_matrix(self) -> np.ndarray:
        """True T (c, c) of the injected noise, T_ij = p(noisy j | true i); of ``HUMAN`` noise the
        frequencies among the training images."""
        kind, rate = self.label_noise.kind, self.label_noise.rate
        if kind in HUMAN:
            train = self.train
            return noise.observed_matrix(train.true_labels, train.labels, self.num_classes)
        model = noise.MODELS.get(kind, noise.MODELS["symmetric"])  # at rate 0 this is no noise
        matrix, shape = model.matrix(rate, self.class_names), (self.num_classes,) * 2
        if getattr(matrix, "shape", None) != shape:
            raise UserError(f"noise {kind!r}: T is {described(matrix)}, expected float64 {shape}")
        return matrix


def as_used(data: LabelledData, selection: ImageSelection) -> LabelledData:
    """The images that a run uses: the first of every class, shrunk."""
    data = data.subset(selection.train_per_class, selection.test_per_class)
    return data.shrunk(selection.shrink) if selection.shrink else data


def _split_with_noise(
    data: LabelledData, label_noise: Noise, seed: int, given: np.ndarray | None
) -> LabelledData:
    """Training images with noisy labels, and validation and test images with true ones; validation
    images with noisy ones under ``HUMAN`` noise."""
    images, labels = data.train.images, data.train.labels
    rng = seeds.generator(seed, "split")
    train, validation = split(labels, data.num_classes, rng)
    kind, noisy, held_out = label_noise.kind, labels[train], labels[validation]
    if kind in noise.MODELS:
        rng = seeds.generator(seed, "noise")
        noisy = noise.MODELS[kind].draw(noisy, label_noise.rate, data.class_names, rng)
        check_labels(f"noise {kind!r}", noisy, len(train), data.num_classes)
    elif kind in ("pseudo", *HUMAN):
        if given is None:
            raise ValueError(f"noise {kind!r}: no labels, expected a function that gives them")
        noisy = given[train]
        held_out = given[validation] if kind in HUMAN else held_out
    return replace(
        data,
        train=Labelled(images[train], noisy, labels[train]),
        validation=Labelled(images[validation], held_out, labels[validation]),
    )


def _frequencies(data: LabelledData) -> np.ndarray:
    """Distribution of the noisy labels as p (c,) (Section 5.8)."""
    frequencies = np.bincount(data.train.labels, minlength=data.num_classes)
    if not frequencies.all():
        missing = data.class_names[int(frequencies.argmin())]
        raise UserError(
            f"data set {data.name!r}: no training image is labelled {missing!r}, expected some of "
            "every class: the prior is the distribution of the labels"
        )
    return (frequencies / frequencies.sum()).astype(np.float32)


def split(
    labels: np.ndarray, num_classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Holds out a random VALIDATION_FRACTION of every class, rounded to whole images. Returns
    sorted int64 indices of training and of validation images; ``labels`` are true ones, int (n,).

    Raises UserError if a class has too few images for one on either side.

    >>> train, validation = split(np.repeat([0, 1], 20), 2, np.random.default_rng(0))
    >>> len(train), len(validation)
    (36, 4)
    """
    is_validation = np.zeros(len(labels), dtype=bool)
    for k in range(num_classes):
        members = np.flatnonzero(labels == k)
        count = round(VALIDATION_FRACTION * len(members))
        if not 1 <= count < len(members):
            raise UserError(
                f"class {k} has {len(members)} images, {count} of them for validation: expected "
                "at least one for validation and one for training"
            )
        is_validation[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~is_validation), np.flatnonzero(is_validation)
