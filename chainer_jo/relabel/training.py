"""The method on data in memory whose labels are in doubt: its two steps, and the probabilities that
images get from networks that have not been trained on them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import chainer
import numpy as np
from chainer import training
from chainer.training.extensions import ExponentialShift
from chainer.training.triggers import ManualScheduleTrigger

from chainer_jo import seeds
from chainer_jo.errors import UserError
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.joint_objective import JointObjective
from chainer_jo.relabel.feature_input import FeatureInput, FeatureSet
from chainer_jo.relabel.posterior_labels import PosteriorLabels, PriorUpdate, prior_of
from chainer_jo.training import extensions
from chainer_jo.training.images import NetworkInput
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD
from chainer_jo.training.updaters import JointUpdater

#: Images per forward pass in test mode.
ROWS = 1000
#: A batch is a power of two, as large as leaves an epoch so many; but not smaller than that, for
#: the statistics of batch normalisation, as long as there are so many images.
FEWEST_BATCHES, SMALLEST_BATCH = 12, 16


@dataclass(frozen=True)
class Settings:
    """What determines training next to data and seed. The defaults are for features; where they
    come from is in docs/label-errors.md.

    Parameters
    ----------
    alpha, beta : of eq. 5, in the first step; here the paper's for most rates of symmetric noise.
    learning_rate, momentum, weight_decay : of SGD. The decay is far above the paper's: features are
        not augmented.
    epochs : of either step.
    quiet : epochs before labels are first updated, which is t1 - 1.
    average : epochs that labels and predictions are averaged over.
    rule : how labels are updated: "posterior" (`PosteriorLabels`), or "soft" (``eq:soft``).
    largest_batch : images per batch at most.
    folds : parts that images are divided into, each classified by a network trained on the others.
    prior : p of eq. 10: "labels", the mean label after each update, or "uniform".
    """

    alpha: float = 1.2
    beta: float = 0.8
    learning_rate: float = 0.3
    momentum: float = 0.9
    weight_decay: float = 0.01
    epochs: int = 16
    quiet: int = 3
    average: int = 4
    rule: str = "posterior"
    largest_batch: int = 512
    folds: int = 3
    prior: str = "labels"

    def batch_size(self, n: int) -> int:
        """Images per batch when there are n."""
        batch = self.largest_batch
        while batch > SMALLEST_BATCH and n < FEWEST_BATCHES * batch:
            batch //= 2
        return min(batch, n)


class MeanPrediction(training.Extension):
    """The mean of the probabilities (n, c) that images get at the ends of epochs from ``start`` on;
    what labels are averaged over, here of images that are not trained on.

    Parameters
    ----------
    inputs : the images.
    start : the first of these epochs.
    """

    trigger = 1, "epoch"

    def __init__(self, inputs: FeatureInput | NetworkInput, start: int) -> None:
        self._inputs = inputs
        self._start = start
        self._epochs = 0
        self.probabilities: np.ndarray | None = None

    def __call__(self, trainer: training.Trainer) -> None:
        if trainer.updater.epoch < self._start:
            return
        latest = predict(trainer.updater.model, self._inputs)
        self._epochs += 1
        if self.probabilities is None:
            self.probabilities = latest
        else:
            self.probabilities += (latest - self.probabilities) / np.float32(self._epochs)


def predict(model: Classifier, inputs: FeatureInput | NetworkInput) -> np.ndarray:
    """Class probabilities (n, c) float32."""
    parts = (slice(start, start + ROWS) for start in range(0, len(inputs), ROWS))
    return np.concatenate([model.predict(inputs.plain(part)) for part in parts])


def first_step(
    data: FeatureSet,
    rows: np.ndarray,
    given: np.ndarray,
    unseen: np.ndarray,
    num_classes: int,
    settings: Settings,
    seed: int,
    numbers: Sequence[int] = (0,),
) -> np.ndarray:
    """Probabilities (m, c) float32 of other images by a network trained with label updates; or
    (m, k, c) by k networks side by side, each of images of its own.

    Parameters
    ----------
    rows, given : int (r,), the images trained on, and their labels; (r, k) for k networks.
    unseen : int (m,), the others; (m, k) for k networks.
    seed : of weights, and of the order, which is the same for all networks.
    numbers : k, those of the networks among all of one seed.
    """
    if settings.rule == "posterior":
        labels = PosteriorLabels(given, num_classes, settings.average)
    else:
        labels = LabelStore(given, num_classes, settings.rule, average=settings.average)
    weights = settings.alpha, settings.beta
    trainer = _trainer(data, rows, labels, weights, settings, (seed, 1, *numbers))
    start, stop = settings.quiet + 1, settings.epochs
    trainer.extend(extensions.LabelUpdate(start, stop), name="LabelUpdate")
    if settings.prior == "labels":
        trainer.extend(PriorUpdate(start, stop), name="PriorUpdate")
    mean = MeanPrediction(data.inputs(unseen), stop - settings.average + 1)
    trainer.extend(mean, name="MeanPrediction")
    _run(trainer)
    return mean.probabilities


def second_step(
    data: FeatureSet,
    rows: np.ndarray,
    labels: np.ndarray,
    settings: Settings,
    seed: int,
) -> Classifier:
    """A fresh network trained on labels (k, c) float32 of the images ``rows`` (k,), soft or
    one-hot, that stay as they are."""
    store = LabelStore(labels, labels.shape[1])
    trainer = _trainer(data, rows, store, (0.0, 0.0), settings, (seed, 2, 0))
    # The learning rate falls after the first and the second third, as in the paper.
    drops = [settings.epochs // 3, 2 * settings.epochs // 3]
    trainer.extend(ExponentialShift("lr", 0.1), trigger=ManualScheduleTrigger(drops, "epoch"))
    _run(trainer)
    return trainer.updater.model


def out_of_sample(
    data: FeatureSet,
    given: np.ndarray,
    num_classes: int,
    settings: Settings,
    seed: int,
) -> np.ndarray:
    """Probabilities (n, c) float32 of every image by a `first_step` on other images.

    What a network says about labels that it was trained on tells little about which are wrong: of a
    few thousand it fits most. Where data allow it, the networks of all folds are trained side by
    side; where folds are not equal, each of the smaller ones' networks sees one image twice. Where
    training diverged, not all of them are finite.

    Parameters
    ----------
    given : int (n,), the labels in doubt.

    Raises
    ------
    UserError
        if there are less than two images per fold, or less than two folds.
    """
    fold = folds(given, settings.folds, seed)
    numbers = range(settings.folds)
    trained_on = [np.flatnonzero(fold != number) for number in numbers]
    others = [np.flatnonzero(fold == number) for number in numbers]
    if data.side_by_side:
        trainings = [(_beside(trained_on), _beside(others), numbers)]
    else:
        trainings = zip(trained_on, others, zip(numbers, strict=True), strict=True)
    probabilities = np.zeros((len(data), num_classes), np.float32)
    for rows, unseen, networks in trainings:
        probabilities[unseen] = first_step(
            data, rows, given[rows], unseen, num_classes, settings, seed, networks
        )
    return probabilities


def _beside(rows: Sequence[np.ndarray]) -> np.ndarray:
    """One array (m, k) of k arrays, the shorter ones begun again."""
    return np.stack([np.resize(each, max(map(len, rows))) for each in rows], axis=1)


def folds(given: np.ndarray, number: int, seed: int) -> np.ndarray:
    """The fold (n,) in [0, number) that each image is in; classes are divided as evenly as can be.

    Raises UserError as `out_of_sample` does.
    """
    if number < 2 or len(given) < 2 * number:
        raise UserError(
            f"{len(given)} images in {number} folds: expected two or more folds of two or more each"
        )
    order = seeds.generator(seed, "split").permutation(len(given))
    order = order[np.argsort(given[order], kind="stable")]
    fold = np.empty(len(given), np.int64)
    fold[order] = np.arange(len(given)) % number
    return fold


def _trainer(
    data: FeatureSet,
    rows: np.ndarray,
    labels: LabelStore,
    weights: tuple[float, float],
    settings: Settings,
    draws: tuple[int, ...],
) -> training.Trainer:
    """With (seed, step, number of each network) for draws."""
    seed, step, *numbers = draws
    n, num_classes = len(rows), labels.labels.shape[-1]
    rngs = (seeds.random_state(seed, "weights", step, number) for number in numbers)
    network = data.network(num_classes, *rngs)
    prior = np.full(num_classes, 1 / num_classes)
    if settings.prior == "labels":
        prior = prior_of(labels.labels)
    model = Classifier(network, JointObjective(prior, *weights))
    optimizer = FlatMomentumSGD(settings.learning_rate, settings.momentum, settings.weight_decay)
    updater = JointUpdater(
        BatchIterator(n, settings.batch_size(n), seed, step, data.pad, data.flip),
        optimizer.setup(model),
        data.inputs(rows),
        labels,
    )
    return training.Trainer(updater, (settings.epochs, "epoch"))


def _run(trainer: training.Trainer) -> None:
    # Chainer's trainer makes its folder even if nothing is written there; and its checks of types
    # take a tenth of a step of a network as small as that for features.
    with tempfile.TemporaryDirectory() as trainer.out, chainer.using_config("type_check", False):
        trainer.run(show_loop_exception_msg=False)
