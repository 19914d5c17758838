"""What a run trains and evaluates on: the split, the noisy labels, and each rank's part of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chainer_jo import seeds
from chainer_jo.datasets import ImageData, augmentation, noise
from chainer_jo.datasets.image_data import check_labels, described
from chainer_jo.datasets.labelled_data import ImageFiles, Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.training.many_ranks import ALONE, Ranks, Shards

#: Images on disk that the mean colour is taken of.
SAMPLE = 500
#: Part of the training images that validation gets (Section 5.1).
HELD_BACK = 0.1


class Task:
    """A rank's part of what one run is made of; everything follows from the data set and the run's
    seed. The first rank has the data, the others are sent what is theirs.

    Parameters
    ----------
    data : the data set on the first rank, None on the others: `ImageData`, of whose images some are
        held back and whose labels are made noisy, or, for ``real`` noise, `LabelledData` as it is.
    pseudo_labels : gives labels (N,) of all training images of the data set, for noise of that
        kind.
    shards : how many the training images are divided into; None: one for each rank.

    Attributes
    ----------
    train : this rank's training images, `Labelled` with the noisy labels.
    evaluation_sets : ``validation`` and, if there is one, ``test``, this rank's part of each.
    shards : how the training images are divided.
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
        data: ImageData | LabelledData | None,
        pseudo_labels: Callable[[], np.ndarray] | None = None,
        shards: int | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.experiment = experiment
        self._ranks = ranks
        whole = common = None
        if ranks.is_first:
            whole, fingerprint = _labelled(experiment, data, pseudo_labels)
            train = whole.train
            known = train.true_labels >= 0
            right = (train.labels == train.true_labels)[known]
            common = (
                fingerprint,
                whole.class_names,
                len(train),
                ("validation", "test") if whole.test else ("validation",),
                _prior(experiment, whole),
                _mean(experiment, train.images),
                float(right.mean()) if known.any() else None,
            )
        self.fingerprint, self.class_names, images, names, *rest = ranks.broadcast(common)
        self.prior, self.mean, self.noisy_labels_right = rest
        self.num_classes = len(self.class_names)
        self.shards = Shards(images, shards or ranks.size, ranks.rank, ranks.size)
        self.train = self._share(whole and whole.train, self.shards.indices)
        self.evaluation_sets = {name: self._share(whole and getattr(whole, name)) for name in names}

    def _share(self, whole: Labelled | None, indices: Callable | None = None) -> Labelled:
        """This rank's part of a set: the images of its shards, or of one round in turn."""
        size = self._ranks.size
        if size == 1 and self.shards.number == 1:
            return whole
        parts = None
        if self._ranks.is_first:
            turns = np.arange(len(whole))
            indices = indices or (lambda rank: turns[rank::size])
            parts = [whole.take(indices(rank)) for rank in range(size)]
        return self._ranks.scatter(parts)

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
        """What this rank trains on: its noisy labels (n,), or its part of the (n, c) that the first
        step ended with.

        Raises
        ------
        UserError
            if the first step has not finished, or was on other data.
        """
        first_step = self.experiment.first_step
        if first_step is None:
            return self.train.labels
        parts = None
        if self._ranks.is_first:
            parts = self.shards.split(self._labels_of(first_step, store))
        return self._ranks.scatter(parts)

    def _labels_of(self, first_step: Experiment, store: RunStore) -> np.ndarray:
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


def _labelled(
    experiment: Experiment,
    data: ImageData | LabelledData,
    pseudo_labels: Callable[[], np.ndarray] | None,
) -> tuple[LabelledData, str]:
    """The whole data set as the run sees it, and its fingerprint."""
    wanted = experiment.data
    if data.name != wanted.name:
        raise UserError(f"data set {data.name!r}: the run {experiment.id} needs {wanted.name!r}")
    if experiment.noise.kind == "real":
        if wanted.left_out is not None:
            data = data.without(wanted.left_out)
        return data, data.fingerprint()
    chosen = data.first("train", wanted.train_per_class)
    data = data.subset(wanted.train_per_class, wanted.test_per_class)
    if wanted.shrink:
        data = data.shrunk(wanted.shrink)
    images, labels = data.train_images, data.train_labels
    rng = seeds.generator(experiment.seed, "split")
    train, validation = split(labels, data.num_classes, rng)
    kind, noisy = experiment.noise.kind, labels[train]
    if kind in noise.MODELS:
        rng = seeds.generator(experiment.seed, "noise")
        noisy = noise.MODELS[kind].draw(noisy, experiment.noise.rate, data.class_names, rng)
        check_labels(f"noise {kind!r}", noisy, len(train), data.num_classes)
    elif kind == "pseudo":
        noisy = pseudo_labels()[chosen][train]
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
