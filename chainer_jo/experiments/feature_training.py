"""The method on feature vectors: its two steps, and probabilities of images not trained on."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import chainer
import numpy as np
from chainer import training
from chainer.training.extensions import ExponentialShift
from chainer.training.triggers import ManualScheduleTrigger

from chainer_jo import seeds
from chainer_jo.errors import UserError
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.feature_network import FeatureNetwork
from chainer_jo.links.joint_objective import JointObjective
from chainer_jo.training import extensions
from chainer_jo.training.feature_input import FeatureInput, centre_and_scale
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD
from chainer_jo.training.posterior_labels import PosteriorLabels, PriorUpdate, prior_of
from chainer_jo.training.updaters import JointUpdater

#: Feature vectors per forward pass in test mode.
ROWS = 8192
#: Batches are at most so large, and an epoch has at least so many unless there are few images.
LARGEST_BATCH, FEWEST_STEPS = 512, 12


@dataclass(frozen=True)
class Schedule:
    """Images per batch; epochs; the epochs before labels are first updated, which is also how many
    labels and predictions are averaged over."""

    batch_size: int
    epochs: int
    average: int


@dataclass(frozen=True)
class FeatureSettings:
    """What determines training on features, next to the data and the seed.

    Alpha and beta are the paper's of most rates of symmetric noise (Table 5). The others were
    found on other rows and seeds than those that results are reported of: see
    docs/label-errors.md.

    Parameters
    ----------
    alpha, beta : of eq. 5, in the first step.
    learning_rate, momentum, weight_decay : of SGD. The decay is stronger than the paper's: features
        are not augmented.
    hidden : units of the network's hidden layer.
    rule : how labels are updated: "posterior" (`PosteriorLabels`), or "soft" (``eq:soft``).
    steps, least_epochs, most_epochs : a step of the method takes as many epochs as make so many
        steps of SGD, but not less or more than these.
    folds : into how many parts images are divided, each classified by a network trained on the
        others.
    """

    alpha: float = 1.2
    beta: float = 0.8
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.01
    hidden: int = 64
    rule: str = "posterior"
    steps: int = 400
    least_epochs: int = 20
    most_epochs: int = 60
    folds: int = 3

    def schedule(self, n: int) -> Schedule:
        """For n training images."""
        batch = LARGEST_BATCH
        while batch > 1 and n < FEWEST_STEPS * batch:
            batch //= 2
        epochs = int(np.clip(-(-self.steps * batch // n), self.least_epochs, self.most_epochs))
        return Schedule(batch, epochs, max(1, epochs // 4))


class FeatureClassifier:
    """A trained network for feature vectors, and how they were centred and scaled."""

    def __init__(self, model: Classifier, mean: np.ndarray, scale: float) -> None:
        self.model = model
        self.mean = mean
        self.scale = scale

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities (n, c) float32 of features (n, d)."""
        parts = (slice(start, start + ROWS) for start in range(0, len(features), ROWS))
        inputs = FeatureInput(features, self.mean, self.scale)
        return np.concatenate([self.model.predict(inputs.plain(part)) for part in parts])


class MeanPrediction(training.Extension):
    """The mean of the probabilities (n, c) that features get at the ends of epochs from ``start``
    on; what labels are averaged over, here of images that are not trained on.

    Parameters
    ----------
    classifier : what is trained.
    features : (n, d).
    start : the first of these epochs.
    """

    trigger = 1, "epoch"

    def __init__(self, classifier: FeatureClassifier, features: np.ndarray, start: int) -> None:
        self._classifier = classifier
        self._features = features
        self._start = start
        self._epochs = 0
        self.probabilities = np.zeros((len(features), 0), np.float32)

    def __call__(self, trainer: training.Trainer) -> None:
        if trainer.updater.epoch < self._start:
            return
        latest = self._classifier.predict(self._features)
        self._epochs += 1
        if self._epochs == 1:
            self.probabilities = latest
        else:
            self.probabilities += (latest - self.probabilities) / np.float32(self._epochs)


def first_step(
    features: np.ndarray,
    given: np.ndarray,
    unseen: np.ndarray,
    num_classes: int,
    settings: FeatureSettings,
    seed: int,
    number: int = 0,
) -> np.ndarray:
    """Probabilities (m, c) float32 of other images by a network trained with label updates.

    Parameters
    ----------
    features, given : of the images trained on, (n, d) and their labels int (n,).
    unseen : features (m, d) of the others.
    seed, number : of weights and order; the number of the network among several of one seed.
    """
    schedule = settings.schedule(len(features))
    if settings.rule == "posterior":
        labels = PosteriorLabels(given, num_classes, schedule.average)
    else:
        labels = LabelStore(given, num_classes, settings.rule, average=schedule.average)
    weights = settings.alpha, settings.beta
    classifier, trainer = _prepare(features, labels, weights, settings, (seed, 1, number))
    start, stop = schedule.average, schedule.epochs
    trainer.extend(extensions.LabelUpdate(start, stop, given), name="LabelUpdate")
    trainer.extend(PriorUpdate(start, stop), name="PriorUpdate")
    mean = MeanPrediction(classifier, unseen, stop - schedule.average + 1)
    trainer.extend(mean, name="MeanPrediction")
    _run(trainer)
    return mean.probabilities


def second_step(
    features: np.ndarray, labels: np.ndarray, settings: FeatureSettings, seed: int
) -> FeatureClassifier:
    """A fresh network trained on labels that stay as they are, (n, c) float32, soft or one-hot."""
    store = LabelStore(labels, labels.shape[1])
    classifier, trainer = _prepare(features, store, (0.0, 0.0), settings, (seed, 2, 0))
    # The learning rate falls after the first and the second third, as in the paper.
    epochs = settings.schedule(len(features)).epochs
    trainer.extend(
        ExponentialShift("lr", 0.1),
        trigger=ManualScheduleTrigger([epochs // 3, 2 * epochs // 3], "epoch"),
    )
    _run(trainer)
    return classifier


def out_of_sample(
    features: np.ndarray, given: np.ndarray, num_classes: int, settings: FeatureSettings, seed: int
) -> np.ndarray:
    """Probabilities (n, c) float32 of every image by the `first_step` on other images.

    What a network gives the labels that it was trained on says little about which are wrong: on a
    few thousand images it fits most of them.

    Raises
    ------
    UserError
        if there are fewer images than networks.
    """
    fold = folds(given, settings.folds, seed)
    probabilities = np.zeros((len(features), num_classes), np.float32)
    for number in range(settings.folds):
        unseen = fold == number
        probabilities[unseen] = first_step(
            features[~unseen],
            given[~unseen],
            features[unseen],
            num_classes,
            settings,
            seed,
            number,
        )
    return probabilities


def folds(given: np.ndarray, number: int, seed: int) -> np.ndarray:
    """The part (n,) in [0, number) that each image is in; every class is divided as evenly as it
    can be.

    Raises UserError if there are less than two images per part.
    """
    if number < 2 or len(given) < 2 * number:
        raise UserError(
            f"{len(given)} images in {number} folds: expected two or more folds, of two or more"
        )
    rng = seeds.generator(seed, "split")
    order = rng.permutation(len(given))
    order = order[np.argsort(given[order], kind="stable")]
    part = np.empty(len(given), np.int64)
    part[order] = np.arange(len(given)) % number
    return part


def _prepare(
    features: np.ndarray,
    labels: LabelStore,
    weights: tuple[float, float],
    settings: FeatureSettings,
    draws: tuple[int, int, int],
) -> tuple[FeatureClassifier, training.Trainer]:
    seed, step, number = draws
    n, num_classes = labels.labels.shape
    schedule = settings.schedule(n)
    network = FeatureNetwork(
        features.shape[1],
        num_classes,
        settings.hidden,
        seeds.random_state(seed, "weights", step, number),
    )
    model = Classifier(network, JointObjective(prior_of(labels.labels), *weights))
    classifier = FeatureClassifier(model, *centre_and_scale(features))
    optimizer = FlatMomentumSGD(settings.learning_rate, settings.momentum, settings.weight_decay)
    given = labels.labels.argmax(axis=1)
    updater = JointUpdater(
        BatchIterator(n, schedule.batch_size, seed, step, pad=0, flip=False),
        optimizer.setup(model),
        FeatureInput(features, classifier.mean, classifier.scale),
        labels,
        given,
        given,  # in the place of the true labels, that nobody knows
    )
    return classifier, training.Trainer(updater, (schedule.epochs, "epoch"))


def _run(trainer: training.Trainer) -> None:
    # Chainer's trainer makes its folder even if nothing is written there.
    with tempfile.TemporaryDirectory() as trainer.out, chainer.using_config("train", True):
        trainer.run(show_loop_exception_msg=False)
