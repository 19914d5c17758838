"""What a run trains and evaluates on: the split and the noisy labels (Section 5.1), the prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chainer_jo import seeds
from chainer_jo.data.image_data import ImageData, check_labels, described
from chainer_jo.data.labelled_data import ImageFiles, Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation, noise
from chainer_jo.method.extensions import accuracy

#: Images on disk that the mean colour is taken of.
SAMPLE = 500
#: Part of the training images that validation gets (Section 5.1).
HELD_BACK = 0.1
#: Besides those that are put into true labels, `chainer_jo.method.noise.MODELS`.
NOISE_KINDS = ("none", "pseudo", "real")


@dataclass(frozen=True)
class Data:
    """Which images: all of the data set ``name``, or the first ``train_per_class`` and
    ``test_per_class`` of every class.

    Images of many sizes are resized to a square of ``resize`` pixels, whose centre of ``crop``
    pixels is used. Those of one size may be shrunk: every square of ``shrink`` x ``shrink`` pixels
    becomes one, their mean. Of `LabelledData` that are divided into parts, one may be left out of
    training and classified instead.
    """

    name: str
    train_per_class: int | None = None
    test_per_class: int | None = None
    resize: int | None = None
    crop: int | None = None
    shrink: int | None = None
    left_out: int | None = None

    @property
    def square(self) -> tuple[int, int]:
        """``resize`` and ``crop``; ValueError if all images have one size."""
        if self.resize is None or self.crop is None:
            raise ValueError(f"data set {self.name!r}: no size to resize to, expected two")
        return self.resize, self.crop


@dataclass(frozen=True)
class Noise:
    """The label noise: its kind and rate r; for pseudo labels the features that were clustered.

    ``real`` is that of labels which the images come with.
    """

    kind: str = "none"
    rate: float = 0.0
    features: str | None = None

    def __post_init__(self) -> None:
        kinds = (*NOISE_KINDS, *noise.MODELS)
        if self.kind not in kinds:
            raise UserError(f"noise {self.kind!r}: expected one of {', '.join(kinds)}")
        if not 0 <= self.rate <= 1:
            raise UserError(f"noise rate {self.rate:g}: expected a number in [0, 1]")
        if self.rate == 0 and self.kind in noise.MODELS:
            object.__setattr__(self, "kind", "none")  # no noise is the same run, whatever its kind

    @property
    def short(self) -> str:
        """As in file names and progress lines: ``sn30``, ``an40``, ``pl``, ``real``, ``clean``."""
        names = {"none": "clean", "pseudo": "pl", "real": "real"}
        name = names.get(self.kind) or noise.MODELS[self.kind].short
        return name + (f"{100 * self.rate:g}" if self.rate else "")


class Task:
    """The data set, split, noise and prior of one run, which follow from the data set and the seed.

    Parameters
    ----------
    wanted : which images, and what becomes of them.
    label_noise : the noise of their labels.
    seed : of the trial, for split and noise.
    data : `ImageData`, of whose images some are held back and whose labels are made noisy, or, for
        ``real`` noise, `LabelledData` as it is.
    pseudo_labels : gives labels (N,) of all training images of the data set, for noise of that
        kind.
    uniform_prior : whether p of eq. 10 is uniform for labels that come with the images, too.

    Attributes
    ----------
    train : the training images, `Labelled` with the noisy labels.
    evaluation_sets : ``validation`` and, if there is one, ``test``, `Labelled`.
    prior : float32 (c,).
    noisy_labels_right : share of right ones among those whose true label is known, or None.
    fingerprint : digest of the images used and their labels.

    Raises
    ------
    UserError
        if the data set is another one than the description names, or is too small for it.
    """

    def __init__(
        self,
        wanted: Data,
        label_noise: Noise,
        seed: int,
        data: ImageData | LabelledData,
        pseudo_labels: Callable[[], np.ndarray] | None = None,
        uniform_prior: bool = False,
    ) -> None:
        if data.name != wanted.name:
            raise UserError(f"data set {data.name!r}: this run needs {wanted.name!r}")
        self.wanted = wanted
        self.label_noise = label_noise
        used = as_used(data, wanted)
        self.fingerprint = used.fingerprint()
        pseudo = None
        if pseudo_labels and label_noise.kind == "pseudo" and isinstance(data, ImageData):
            pseudo = pseudo_labels()[data.first("train", wanted.train_per_class)]
        if isinstance(used, ImageData):
            sets = _split_with_noise(used, label_noise, seed, pseudo)
        else:
            sets = used
        self.class_names = sets.class_names
        self.num_classes = len(sets.class_names)
        self.train = sets.train
        self.evaluation_sets = {"validation": sets.validation}
        if sets.test:
            self.evaluation_sets["test"] = sets.test
        uniform = uniform_prior or label_noise.kind != "real"
        self.prior = _uniform(sets) if uniform else _frequencies(sets, wanted.left_out)
        self.noisy_labels_right = accuracy(sets.train.labels, sets.train.true_labels)

    @cached_property
    def mean(self) -> np.ndarray:
        """What is subtracted from images. Of images in memory the mean training image, float32
        (h, w, c) in [0, 1]; of those on disk the mean colour, float64 (3,) from 0 to 255."""
        images = self.train.images
        if isinstance(images, ImageFiles):
            return images[:SAMPLE].mean_colour(*self.wanted.square)
        return augmentation.mean_image(images)

    @property
    def transition_matrix(self) -> np.ndarray:
        """T (c, c) of the noise that was injected, T_ij = p(noisy j | true i)."""
        kind, rate = self.label_noise.kind, self.label_noise.rate
        model = noise.MODELS.get(kind, noise.MODELS["symmetric"])  # at rate 0 this is no noise
        matrix, shape = model.matrix(rate, self.class_names), (self.num_classes,) * 2
        if getattr(matrix, "shape", None) != shape:
            raise UserError(f"noise {kind!r}: T is {described(matrix)}, expected float64 {shape}")
        return matrix


def as_used(data: ImageData | LabelledData, wanted: Data) -> ImageData | LabelledData:
    """The first images of every class, shrunk; of `LabelledData`, those not left out."""
    if isinstance(data, LabelledData):
        return data if wanted.left_out is None else data.without(wanted.left_out)
    data = data.subset(wanted.train_per_class, wanted.test_per_class)
    return data.shrunk(wanted.shrink) if wanted.shrink else data


def _split_with_noise(
    data: ImageData, label_noise: Noise, seed: int, pseudo_labels: np.ndarray | None
) -> LabelledData:
    """Images with labels made noisy, and part of them held back."""
    images, labels = data.train_images, data.train_labels
    rng = seeds.generator(seed, "split")
    train, validation = split(labels, data.num_classes, rng)
    kind, noisy = label_noise.kind, labels[train]
    if kind in noise.MODELS:
        rng = seeds.generator(seed, "noise")
        noisy = noise.MODELS[kind].draw(noisy, label_noise.rate, data.class_names, rng)
        check_labels(f"noise {kind!r}", noisy, len(train), data.num_classes)
    elif kind == "pseudo":
        if pseudo_labels is None:
            raise ValueError("noise 'pseudo': no labels, expected a function that gives them")
        noisy = pseudo_labels[train]
    return LabelledData(
        data.name,
        data.class_names,
        Labelled(images[train], noisy, labels[train]),
        Labelled(images[validation], labels[validation], labels[validation]),
        Labelled(data.test_images, data.test_labels, data.test_labels),
    )


def _uniform(data: LabelledData) -> np.ndarray:
    """p (c,) where every class has equally many images (Section 5.2)."""
    classes = len(data.class_names)
    return np.full(classes, 1 / classes, np.float32)


def _frequencies(data: LabelledData, left_out: int | None) -> np.ndarray:
    """p (c,), the distribution of labels that come with the images (Section 5.8)."""
    frequencies = np.bincount(data.train.labels, minlength=len(data.class_names))
    if left_out is not None:
        # All images of a class may be in the part that is left out.
        frequencies = np.maximum(frequencies, 1)
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
    """Holds back a random part of every class, HELD_BACK rounded to whole images.

    Parameters
    ----------
    labels : int, (n,), the true labels, all in [0, num_classes).

    Returns
    -------
    train, validation : int64 index arrays, sorted, disjoint, together 0..n-1.

    Raises
    ------
    UserError
        if a class has too few images for one on either side.
    """
    held_back = np.zeros(len(labels), dtype=bool)
    for k in range(num_classes):
        members = np.flatnonzero(labels == k)
        count = round(HELD_BACK * len(members))
        if not 1 <= count < len(members):
            raise UserError(
                f"class {k} has {len(members)} images, {count} of them for validation: expected "
                "at least one for validation and one for training"
            )
        held_back[rng.permutation(members)[:count]] = True
    return np.flatnonzero(~held_back), np.flatnonzero(held_back)
