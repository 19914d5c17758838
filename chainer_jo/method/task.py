"""What a run trains and evaluates on: the split and the noisy labels (Section 5.1), the prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chainer_jo import seeds
from chainer_jo.data.image_data import ImageData, check_labels, described
from chainer_jo.data.labelled_data import ImageFiles, Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation, noise
from chainer_jo.method.extensions import accuracy
from chainer_jo.runs.experiment import Data, Experiment
from chainer_jo.runs.store import RunStore

#: Images on disk that the mean colour is taken of.
SAMPLE = 500
#: Part of the training images that validation gets (Section 5.1).
HELD_BACK = 0.1


class Task:
    """What one run is made of; everything follows from the data set and the run's seed.

    Parameters
    ----------
    data : `ImageData`, of whose images some are held back and whose labels are made noisy, or, for
        ``real`` noise, `LabelledData` as it is.
    pseudo_labels : gives labels (N,) of all training images of the data set, for noise of that
        kind.

    Attributes
    ----------
    train : the training images, `Labelled` with the noisy labels.
    evaluation_sets : ``validation`` and, if there is one, ``test``, `Labelled`.
    prior : float32 (c,).
    mean : what is subtracted from images. Of images in memory the mean training image, float32
        (h, w, c) in [0, 1]; of those on disk the mean colour, float64 (3,) from 0 to 255; None with
        pretrained weights, which come with one.
    noisy_labels_right : share of right ones among those whose true label is known, or None.
    fingerprint : digest of the images used and their labels.

    Raises
    ------
    UserError
        if the data set is another one than the experiment names, or is too small for it.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: ImageData | LabelledData,
        pseudo_labels: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.experiment = experiment
        sets, self.fingerprint = _split_with_noise(experiment, data, pseudo_labels)
        self.class_names = sets.class_names
        self.num_classes = len(sets.class_names)
        self.train = sets.train
        self.evaluation_sets = {"validation": sets.validation}
        if sets.test:
            self.evaluation_sets["test"] = sets.test
        self.prior = _prior(experiment, sets)
        self.mean = _mean(experiment, sets.train.images)
        self.noisy_labels_right = accuracy(sets.train.labels, sets.train.true_labels)

    @property
    def transition_matrix(self) -> np.ndarray:
        """T (c, c) of the noise that was injected, T_ij = p(noisy j | true i)."""
        kind, rate = self.experiment.noise.kind, self.experiment.noise.rate
        model = noise.MODELS.get(kind, noise.MODELS["symmetric"])  # at rate 0 this is no noise
        matrix, shape = model.matrix(rate, self.class_names), (self.num_classes,) * 2
        if getattr(matrix, "shape", None) != shape:
            raise UserError(f"noise {kind!r}: T is {described(matrix)}, expected float64 {shape}")
        return matrix

    def labels(self, store: RunStore) -> np.ndarray:
        """What the run trains on: the noisy labels (n,), or those (n, c) that the first step ended
        with.

        Raises
        ------
        UserError
            if the first step has not finished, or was on other data.
        """
        first_step = self.experiment.first_step
        if first_step is None:
            return self.train.labels
        result, labels = store.result(first_step), store.labels(first_step)
        if result is None or result["state"] != "finished" or labels is None:
            raise UserError(
                f"labels of {first_step.id}: not there; the first step has to finish first"
            )
        if result["data"] != self.fingerprint:
            raise UserError(
                f"labels of {first_step.id}: of data with fingerprint {result['data']}, these have "
                f"{self.fingerprint}; expected the same data, or another --results folder"
            )
        return labels


def check_results(
    experiments: Sequence[Experiment], store: RunStore, data: ImageData | LabelledData | None = None
) -> None:
    """Raises UserError for runs that finished on other data than these; None: for runs on two."""
    expected: dict[Data, str] = {}
    for experiment in experiments:
        if result := store.result(experiment):
            found, used = result.get("data"), experiment.data
            if used not in expected:
                expected[used] = _as_used(data, used).fingerprint() if data else found
            if found != expected[used]:
                raise UserError(
                    f"run {experiment.id} in {store.root}: of data with fingerprint {found}, "
                    f"{'these' if data else 'others there'} have {expected[used]}; expected runs "
                    "on the same data alone, or another folder for the results"
                )


def _as_used(data: ImageData | LabelledData, wanted: Data) -> ImageData | LabelledData:
    """The first images of every class, shrunk; of `LabelledData`, those not left out."""
    if isinstance(data, LabelledData):
        return data if wanted.left_out is None else data.without(wanted.left_out)
    data = data.subset(wanted.train_per_class, wanted.test_per_class)
    return data.shrunk(wanted.shrink) if wanted.shrink else data


def _split_with_noise(
    experiment: Experiment,
    data: ImageData | LabelledData,
    pseudo_labels: Callable[[], np.ndarray] | None,
) -> tuple[LabelledData, str]:
    """The whole data set as the run sees it, and its fingerprint."""
    wanted = experiment.data
    if data.name != wanted.name:
        raise UserError(f"data set {data.name!r}: the run {experiment.id} needs {wanted.name!r}")
    whole, data = data, _as_used(data, wanted)
    if experiment.noise.kind == "real":
        return data, data.fingerprint()
    images, labels = data.train_images, data.train_labels
    rng = seeds.generator(experiment.seed, "split")
    train, validation = split(labels, data.num_classes, rng)
    kind, noisy = experiment.noise.kind, labels[train]
    if kind in noise.MODELS:
        rng = seeds.generator(experiment.seed, "noise")
        noisy = noise.MODELS[kind].draw(noisy, experiment.noise.rate, data.class_names, rng)
        check_labels(f"noise {kind!r}", noisy, len(train), data.num_classes)
    elif kind == "pseudo":
        noisy = pseudo_labels()[whole.first("train", wanted.train_per_class)][train]
    labelled = LabelledData(
        data.name,
        data.class_names,
        Labelled(images[train], noisy, labels[train]),
        Labelled(images[validation], labels[validation], labels[validation]),
        Labelled(data.test_images, data.test_labels, data.test_labels),
    )
    return labelled, data.fingerprint()


def _mean(experiment: Experiment, images: np.ndarray | ImageFiles) -> np.ndarray | None:
    if experiment.network.weights:
        return None
    if isinstance(images, ImageFiles):
        size = experiment.data
        return images[:SAMPLE].mean_colour(size.resize, size.crop)
    return augmentation.mean_image(images)


def _prior(experiment: Experiment, data: LabelledData) -> np.ndarray:
    """p (c,): uniform, as every class has equally many images (Section 5.2); for labels
    that come with the images the distribution of all of them (Section 5.8)."""
    classes = len(data.class_names)
    if experiment.noise.kind != "real" or experiment.prior == "uniform":
        return np.full(classes, 1 / classes, np.float32)
    frequencies = np.bincount(data.train.labels, minlength=classes)
    if experiment.data.left_out is not None:
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
