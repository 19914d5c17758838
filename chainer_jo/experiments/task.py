"""What a run trains and evaluates on: the split, the noisy labels, the sets of images."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from chainer_jo import seeds
from chainer_jo.datasets import ImageData, augmentation, noise, splits
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore


class Task:
    """The arrays of one run; everything follows from the data set and the run's seed.

    ``pseudo_labels`` gives labels (N,) of all training images of the data set, for noise of that
    kind.

    Attributes
    ----------
    train : uint8 (n, h, w, c), the training images.
    true_labels, noisy_labels : int32 (n,).
    mean : float32 (h, w, c), the mean training image in [0, 1].
    fingerprint : digest of the images used and their labels.
    evaluation_sets : (name, images, labels) of ``validation`` (true labels) and ``test``.

    Raises
    ------
    UserError
        if the data set is another one than the experiment names, or is too small for it.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: ImageData,
        pseudo_labels: Callable[[], np.ndarray] | None = None,
    ) -> None:
        wanted = experiment.data
        if data.name != wanted.name:
            raise UserError(
                f"data set {data.name!r}: the run {experiment.id} needs {wanted.name!r}"
            )
        chosen = data.first("train", wanted.train_per_class)
        data = data.subset(wanted.train_per_class, wanted.test_per_class)
        if wanted.shrink:
            data = data.shrunk(wanted.shrink)
        self.experiment = experiment
        self.num_classes = data.num_classes
        self.class_names = data.class_names
        self.fingerprint = data.fingerprint()
        rng = seeds.generator(experiment.seed, "split")
        train, validation = splits.split(data.train_labels, self.num_classes, rng)
        batch_size = experiment.optimization.batch_size
        if len(train) < batch_size:
            raise UserError(
                f"data set {data.name!r}: {len(train)} training images, "
                f"expected at least one batch of {batch_size}"
            )
        self._pseudo_labels = pseudo_labels and (lambda: pseudo_labels()[chosen][train])
        self.train = data.train_images[train]
        self.true_labels = data.train_labels[train]
        self.mean = augmentation.mean_image(self.train)
        self.evaluation_sets = (
            ("validation", data.train_images[validation], data.train_labels[validation]),
            ("test", data.test_images, data.test_labels),
        )

    @cached_property
    def noisy_labels(self) -> np.ndarray:
        kind, rate = self.experiment.noise.kind, self.experiment.noise.rate
        if kind in noise.MODELS:
            rng = seeds.generator(self.experiment.seed, "noise")
            return noise.MODELS[kind].draw(self.true_labels, rate, self.class_names, rng)
        if kind == "pseudo":
            return self._pseudo_labels()
        return self.true_labels

    @property
    def transition_matrix(self) -> np.ndarray:
        """T (c, c) of the noise that was injected, T_ij = p(noisy j | true i)."""
        kind, rate = self.experiment.noise.kind, self.experiment.noise.rate
        model = noise.MODELS.get(kind, noise.MODELS["symmetric"])  # at rate 0 this is no noise
        return model.matrix(rate, self.class_names)

    @property
    def prior(self) -> np.ndarray:
        """p (c,): uniform, "because each class has the same number of images" (Section 5.2)."""
        return np.full(self.num_classes, 1 / self.num_classes, np.float32)

    def labels(self, store: RunStore) -> np.ndarray:
        """What the run trains on: the noisy labels (n,), or the (n, c) its first step ended
        with."""
        first_step = self.experiment.first_step
        if first_step is None:
            return self.noisy_labels
        labels = store.labels(first_step)
        if labels is None:
            raise UserError(
                f"labels of {first_step.id}: not there; the first step has to run first"
            )
        return labels
