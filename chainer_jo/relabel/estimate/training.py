"""The paper's two steps on feature vectors with noisy labels, and out-of-fold probabilities: of
every image by networks that have not been trained on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import chainer
import numpy as np
from chainer import training

from chainer_jo import seeds
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.method import algorithm1
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.relabel.estimate.features import HIDDEN, FeatureInput, FeatureNetwork, FeatureSet
from chainer_jo.relabel.estimate.folds import folds, near_duplicates
from chainer_jo.relabel.estimate.label_errors import ClassNames, LabelErrors, find_label_errors
from chainer_jo.relabel.estimate.label_noise import majority
from chainer_jo.relabel.estimate.posterior_labels import PosteriorLabels, prior_of
from chainer_jo.relabel.estimate.recipe import Recipe, check_limits

#: Images per forward pass in test mode.
IMAGES_PER_PASS = 1000
#: Images per batch: the largest power of two with which an epoch has FEWEST_BATCHES. Statistics of
#: fewer than SMALLEST_BATCH are too noisy for batch normalisation.
LARGEST_BATCH, SMALLEST_BATCH, FEWEST_BATCHES = 512, 16, 12
#: Most numbers in the labels of networks that are trained side by side.
LARGEST_LABELS = 2**22


@contextmanager
def configured() -> Iterator[None]:
    """Training's own configuration of Chainer and NumPy, whatever the caller's is.

    Chainer's type checks take a tenth of a step of networks this small. `_check_finite` looks for
    NaN and infinity after training.
    """
    with (
        chainer.using_config("train", True),
        chainer.using_config("enable_backprop", True),
        chainer.using_config("dtype", np.float32),
        chainer.using_config("type_check", False),
        np.errstate(all="ignore"),
    ):
        yield


def predict(model: Classifier, inputs: FeatureInput) -> np.ndarray:
    """Class probabilities (n, c) float32."""
    starts = range(0, len(inputs), IMAGES_PER_PASS)
    parts = (inputs.plain(slice(start, start + IMAGES_PER_PASS)) for start in starts)
    return np.concatenate([model.predict(part) for part in parts])


@configured()
def first_step(
    data: FeatureSet,
    rows: np.ndarray,
    given: np.ndarray,
    unseen: np.ndarray,
    num_classes: int,
    recipe: Recipe,
    seed: int,
    numbers: Sequence[int] = (0,),
    on_epoch: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Trains a network with label updates; returns its probabilities (m, c) float32 of held-out
    images, or (m, k, c) of k networks side by side, each with its own images: the mean over the
    last epochs.

    Parameters
    ----------
    rows, given : int (r,), training images and their labels; (r, k) for k networks.
    unseen : int (m,), held-out images; (m, k) for k networks.
    seed : of weights, and of the order, which is the same for all networks.
    numbers : of the k networks among all of one seed.
    """
    if recipe.rule == "posterior":
        labels: SoftLabels = PosteriorLabels(given, num_classes, recipe.average)
    else:
        labels = SoftLabels(given, num_classes, recipe.rule, average=recipe.average)
    weights = recipe.alpha, recipe.beta
    model = _model(data, rows, labels, weights, recipe, (seed, 1, *numbers))
    start, stop = recipe.warmup_epochs + 1, recipe.epochs
    inputs, predicted = data.inputs(unseen), []
    sgd = _sgd(recipe, len(rows))
    trainer = algorithm1.first_step(model, data.inputs(rows), labels, sgd, start, stop, seed=seed)

    def update_prior(trainer: training.Trainer) -> None:
        """Makes the mean label the p of L_p (eq. 10) in the next epoch: under asymmetric noise,
        given and true labels have different distributions."""
        if recipe.prior == "labels" and trainer.updater.epoch >= start:
            model.objective.prior[...] = prior_of(labels.soft_labels)

    def predict_unseen(trainer: training.Trainer) -> None:
        if trainer.updater.epoch > stop - recipe.average:
            predicted.append(predict(model, inputs))
        on_epoch()

    # After `LabelUpdate`, whose priority is higher.
    trainer.extend(update_prior, trigger=(1, "epoch"), priority=training.PRIORITY_EDITOR)
    trainer.extend(predict_unseen, trigger=(1, "epoch"))
    _run(trainer)
    mean = np.zeros((), np.float32)
    for i, latest in enumerate(predicted, 1):
        mean = mean + (latest - mean) / np.float32(i)
    return mean


@configured()
def second_step(data: FeatureSet, labels: np.ndarray, recipe: Recipe, seed: int) -> Classifier:
    """Trains a fresh network on fixed labels (n, c) float32 of all images, soft or one-hot. Raises
    UserError if training diverged."""
    fixed, rows = SoftLabels(labels, labels.shape[1]), np.arange(len(data))
    model = _model(data, rows, fixed, (0.0, 0.0), recipe, (seed, 2, 0))
    # The learning rate falls after the first and the second third, as in the paper.
    sgd = _sgd(recipe, len(rows), (recipe.epochs // 3, 2 * recipe.epochs // 3))
    _run(algorithm1.second_step(model, data.inputs(rows), fixed, sgd, seed=seed))
    _check_finite(recipe, *(parameter.array for parameter in model.params()))
    return model


def estimate_errors(
    data: FeatureSet,
    given: np.ndarray,
    class_names: ClassNames,
    recipe: Recipe,
    seed: int,
    shown: bool = False,
) -> LabelErrors:
    """Errors of noisy labels, ``given``, int (n,) or (n, m) for several an image, by `out_of_fold`
    probabilities of networks trained on the majority; near duplicates are in one fold.

    ``shown`` shows the progress. Raises UserError if training diverged, there are too few images
    for folds, or the seed is no whole number from 0 on.
    """
    check_limits({"seed": seed})
    groups = near_duplicates(data.values)
    trained = majority(given), len(class_names), recipe, seed
    probabilities = out_of_fold(data, *trained, groups, shown)
    _check_finite(recipe, probabilities)
    return find_label_errors(given, probabilities, class_names, groups)


def _check_finite(recipe: Recipe, *arrays: Any) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise UserError(
            f"training diverged with learning rate {recipe.learning_rate:g}, alpha "
            f"{recipe.alpha:g} and beta {recipe.beta:g}, expected a smaller one"
        )


def out_of_fold(
    data: FeatureSet,
    given: np.ndarray,
    num_classes: int,
    recipe: Recipe,
    seed: int,
    groups: Sequence[np.ndarray] = (),
    shown: bool = False,
) -> np.ndarray:
    """Out-of-fold probabilities (n, c) float32 for noisy labels int (n,): the mean over seeds of
    `first_step` on the other folds. Raises UserError as `folds` does.

    Networks are trained side by side; where folds differ in size, the smaller training sets have
    some images twice. If training diverges, some probabilities are not finite.
    """
    n = len(data)
    number = recipe.number_of_seeds(n)
    divided = [folds(given, recipe.folds, (seed, k), groups) for k in range(number)]
    networks = [(k, fold) for k in range(number) for fold in range(recipe.folds)]
    at_a_time = max(1, LARGEST_LABELS // (n * num_classes))
    epochs = count(1)
    bar = Progress("Training", "epochs", -(-len(networks) // at_a_time) * recipe.epochs)

    def on_epoch() -> None:
        if shown:
            bar.update(next(epochs))

    mean = np.zeros((n, num_classes), np.float32)
    for first in range(0, len(networks), at_a_time):
        some = networks[first : first + at_a_time]
        rows = _stacked([np.flatnonzero(divided[k] != fold) for k, fold in some])
        others = [np.flatnonzero(divided[k] == fold) for k, fold in some]
        numbers = range(first, first + len(some))
        probabilities = first_step(
            data, rows, given[rows], _stacked(others), num_classes, recipe, seed, numbers, on_epoch
        )
        for of_network, unseen in zip(probabilities.swapaxes(0, 1), others, strict=True):
            mean[unseen] += of_network[: len(unseen)] / np.float32(number)
    if shown:
        bar.finish(bar.total)
    return mean


def _stacked(rows: Sequence[np.ndarray]) -> np.ndarray:
    """One array (m, k) of k arrays; shorter ones are repeated from their start."""
    return np.stack([np.resize(each, max(map(len, rows))) for each in rows], axis=1)


def _sgd(recipe: Recipe, n: int, drops: tuple[int, ...] = ()) -> algorithm1.Optimization:
    batch = LARGEST_BATCH
    while batch > SMALLEST_BATCH and n < FEWEST_BATCHES * batch:
        batch //= 2
    sgd = recipe.epochs, recipe.learning_rate, drops, min(batch, n)
    return algorithm1.Optimization(*sgd, weight_decay=recipe.weight_decay, pad=0, flip=False)


def _model(
    data: FeatureSet,
    rows: np.ndarray,
    labels: SoftLabels,
    weights: tuple[float, float],
    recipe: Recipe,
    draws: tuple[int, ...],
) -> Classifier:
    """Untrained model of a step; ``draws`` are seed, step and number of each network."""
    seed, step, *numbers = draws
    num_classes = labels.soft_labels.shape[-1]
    rngs = [seeds.random_state(seed, "weights", step, number) for number in numbers]
    networks = [FeatureNetwork(data.values.shape[1], num_classes, HIDDEN, rng) for rng in rngs]
    network = FeatureNetwork.stacked(networks) if rows.ndim == 2 else networks[0]
    prior = np.full(num_classes, 1 / num_classes)
    if recipe.prior == "labels":
        prior = prior_of(labels.soft_labels)
    return Classifier(network, JointObjective(prior, *weights))


def _run(trainer: training.Trainer) -> None:
    trainer.out = os.curdir  # Chainer's trainer makes its folder even if nothing is written there
    trainer.run(show_loop_exception_msg=False)
