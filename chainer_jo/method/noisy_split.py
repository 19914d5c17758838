"""The data of a run: training and validation split, noisy labels (Section 5.1), class prior p."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chainer_jo import seeds
from chainer_jo.data.decoding import decode
from chainer_jo.data.labelled_data import Labelled, LabelledData, check_labels, described
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation
from chainer_jo.method.accuracy import accuracy
from chainer_jo.method.label_sources import LabelFiles, Noise

#: Number of images on disk that the mean colour is estimated from.
MEAN_COLOUR_IMAGES = 500
#: Fraction of the training images that is held out for validation (Section 5.1).
VALIDATION_FRACTION = 0.1


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


class NoisySplit:
    """Training, validation and test images of one run, their noisy labels, and the prior p.

    Parameters
    ----------
    selection : images to use.
    noise : noise of the labels.
    seed : seed of the trial, for split and noise.
    data : clean, to be split and made noisy, or with noisy labels.
    given : files that labels come from; None: no files.

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
        noise: Noise,
        seed: int,
        data: LabelledData,
        given: LabelFiles | None = None,
    ) -> None:
        if data.name != selection.name:
            raise UserError(f"data set {data.name!r}: this run needs {selection.name!r}")
        self.selection = selection
        self.noise = noise
        if not (data.is_clean or noise.source.with_images):
            raise UserError(f"noise {noise.kind!r}: the data have noisy labels, expected 'real'")
        used = as_used(data, selection)
        self.fingerprint = used.fingerprint()
        sets = self._with_noise(used, data, seed, given or LabelFiles()) if used.is_clean else used
        self.class_names = sets.class_names
        self.num_classes = sets.num_classes
        self.root = sets.root
        self.evaluation_sets = sets.sets
        self.train = self.evaluation_sets.pop("train")
        uniform = np.full(self.num_classes, 1 / self.num_classes, np.float32)  # Section 5.2
        self.prior = _frequencies(sets) if noise.source.with_images else uniform
        self.noisy_labels_right = accuracy(sets.train.labels, sets.train.true_labels)

    def _with_noise(
        self, used: LabelledData, data: LabelledData, seed: int, given: LabelFiles
    ) -> LabelledData:
        """Training, validation and test images of the ones ``used`` of ``data``; training images
        with noisy labels, the others with true ones or as the source says."""
        noise, true = self.noise, used.train.labels
        rows = np.arange(len(data.train))[data.first("train", self.selection.train_per_class)]

        def labelled(part: np.ndarray, noisy: bool) -> Labelled:
            labels = true[part]
            if noisy:
                labels = noise.source.labels(data, rows[part], noise, seed, given)
                check_labels(f"noise {noise.kind!r}", labels, len(part), data.num_classes)
            return Labelled(used.train.images[part], labels, true[part])

        train, held_out = split(true, data.num_classes, seeds.generator(seed, "split"))
        validation = labelled(held_out, noise.source.noisy_validation)
        return replace(used, train=labelled(train, True), validation=validation)

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
        """True T (c, c) of the noise, T_ij = p(noisy j | true i)."""
        noise, shape = self.noise, (self.num_classes,) * 2
        matrix = noise.source.transition(noise, self.train, self.class_names)
        if getattr(matrix, "shape", None) != shape:
            found = described(matrix)
            raise UserError(f"noise {noise.kind!r}: T is {found}, expected float64 {shape}")
        return matrix


def as_used(data: LabelledData, selection: ImageSelection) -> LabelledData:
    """The images that a run uses: the first of every class, shrunk."""
    data = data.subset(selection.train_per_class, selection.test_per_class)
    return data.shrunk(selection.shrink) if selection.shrink else data


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
