"""Label correction by features, computed from the images or given; and by given probabilities."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from chainer import serializers
from threadpoolctl import threadpool_limits

from chainer_jo.data.input_problems import Problems
from chainer_jo.devices import usable_cores
from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate import training
from chainer_jo.relabel.estimate.features import HIDDEN, FeatureSet
from chainer_jo.relabel.estimate.folds import check_enough
from chainer_jo.relabel.estimate.label_errors import LabelErrors, find_label_errors
from chainer_jo.relabel.estimate.label_noise import majority
from chainer_jo.relabel.estimate.recipe import COMPUTED, Recipe
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.outcome.outcome import Accuracy, Outcome, choice_in_words
from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.relabel.read import image_features
from chainer_jo.relabel.read.feature_table import check_different, read_features, read_rows
from chainer_jo.relabel.read.image_features import Extractor, candidates
from chainer_jo.relabel.read.labelled_images import LabelledImages, LabelledSets, check_apart

#: Features of more than MOST dimensions are projected to COMPONENTS principal ones, of MAX_ROWS
#: images at most. Pixels of 8 x 8 are not: networks learn standardised columns better.
MOST, COMPONENTS, MAX_ROWS = 256, 128, 10_000
_log = logging.getLogger(__name__)


class Axes(NamedTuple):
    """Mean (d,) and orthonormal principal directions (d, k) of features, float32."""

    mean: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> Axes:
        """The `COMPONENTS` directions of largest variance of features (n, d); few features' own."""
        if (d := features.shape[1]) <= MOST:
            return cls(np.zeros(d, np.float32), np.eye(d, dtype=np.float32))
        mean = features.mean(axis=0, dtype=np.float64)
        rows = np.random.default_rng(0).permutation(len(features))[:MAX_ROWS]
        some = features[rows] - mean
        directions = np.linalg.eigh(some.T @ some)[1][:, : -COMPONENTS - 1 : -1]
        return cls(mean.astype(np.float32), directions.astype(np.float32))

    def project(self, features: np.ndarray) -> np.ndarray:
        """Coordinates (n, k) of features (n, d)."""
        return (features - self.mean) @ self.directions


@dataclass(frozen=True, eq=False)
class Candidate:
    """Features that networks may be trained on: of the training images, and (n, d) of the other
    sets by their use. `extractor` and `axes` are of computed features, whose `data` are projected.
    """

    data: FeatureSet
    held_out: Mapping[str, np.ndarray]
    extractor: Extractor | None = None
    axes: Axes | None = None

    def network(
        self, labels: np.ndarray, classes: Sequence[str], recipe: Recipe, seed: int
    ) -> TrainedNetwork:
        """Network trained on labels (n, c) of all images. Projection and scale of computed features
        are multiplied into its first layer, so that its input are features as computed."""
        labels = labels.astype(np.float32)
        network = training.second_step(self.data, labels, recipe, seed).predictor
        mean, scale = self.data.normalisation
        weights = serializers.npz.serialize(network)
        about = {"classes": classes, "features": len(mean), "hidden": HIDDEN}
        if self.axes and self.extractor:
            centre, directions = self.axes
            weights["hidden/W"] = (weights["hidden/W"] / scale) @ directions.T
            mean, scale = centre + directions @ mean, np.ones((), "f4")
            about["features"] = len(centre)
            about["seen"] = {"by": self.extractor.name, "side": self.extractor.side}
        return TrainedNetwork(about, weights, {"mean": mean, "scale": scale})


@dataclass(eq=False)
class ByFeatures:
    """Trains small networks on features, which gain nothing from GPUs or processes. Of several
    computed features it takes those from which networks predict the noisy labels best, out of fold.

    Parameters
    ----------
    features : one of `COMPUTED`, or a file for `read_features`.
    device : of computed features, "cpu" or "cuda:N".
    baseline : True also trains a network on the given labels.

    Raises UserError for too few images, or a file or network of features that cannot be used.
    """

    sets: LabelledSets
    features: str = "auto"
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0
    device: str = "cpu"
    threads: int = 1
    baseline: bool = False
    noted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.threads = min(self.threads, usable_cores())
        self.labels = majority(self.sets.train.given)
        check_enough(self.labels, self.recipe.folds, f"data {self.sets.train.source!r}: ")
        self.extractors: list[Extractor] = []
        if self.features in COMPUTED:
            self.extractors = candidates(self.features, self.sets.train)
            return
        _check_paths(self.features, self.sets)
        features = self._of_all_sets(partial(read_features, self.features))
        with threadpool_limits(self.threads):
            data = FeatureSet(features.pop("train"), self.labels)
        self.given = Candidate(data, features)

    def _of_all_sets(self, of: Callable[[LabelledImages], np.ndarray]) -> dict[str, np.ndarray]:
        """Features of each set; logs how many images of a held-out set seem to be training images,
        once."""
        found = {use: of(images) for use, images in self.sets.by_use.items()}
        if len(found) > 1 and not self.noted:
            trained = {hash(row.tobytes()) for row in found["train"]}
            for use in self.sets.held_out:
                if copies := sum(hash(row.tobytes()) in trained for row in found[use]):
                    shown = f"{copies:,} of {len(found[use]):,} images have the features"
                    _log.warning("--%s: %s of a training image; expected others", use, shown)
                    self.noted = True
        return found

    @property
    def about(self) -> dict[str, str]:
        """Settings of the computation, by name."""
        recipe = self.recipe
        reduced = {True: f", {COMPONENTS} principal components", False: ""}
        if ways := " or ".join(e.words + reduced[e.length > MOST] for e in self.extractors):
            better = ", whichever predict the labels better" if len(self.extractors) > 1 else ""
            seen = ways + better
        else:
            mean, scale = self.given.data.normalisation
            own = ", each divided by its own standard deviation" if scale.ndim else ""
            seen = f"{len(mean)} features each{own}"
        return {
            "images": f"{seen}; network with one hidden layer",
            "training": f"{recipe.folds}-fold cross-validation with "
            f"{recipe.number_of_seeds(len(self.sets.train))} seeds, {recipe.epochs} epochs each, "
            f"label updates from epoch {recipe.warmup_epochs + 1}; then {recipe.epochs} epochs on "
            "the new labels",
            "settings": f"alpha {recipe.alpha:g}, beta {recipe.beta:g}, learning rate "
            f"{recipe.learning_rate:g}",
            "device": "cpu, fp32",
        }

    def plan(self) -> None:
        """Prints the estimated time."""
        if self.extractors:
            print("built-in features take about 10 ms an image on one core, once")
        print("estimated time: seconds for thousands of images, minutes for hundreds of thousands")

    def work(self) -> Outcome:
        """The outcome, with networks trained on the new labels and, if asked for, on the given."""
        images, recipe, seed = self.sets.train, self.recipe, self.seed
        names = images.class_names

        def estimated(candidate: Candidate) -> LabelErrors:
            return training.estimate_errors(
                candidate.data, images.given, names, recipe, seed, shown=True
            )

        def accuracy(network: TrainedNetwork, use: str) -> float:
            predicted = network.of_features(best.held_out[use]).argmax(axis=1)
            return float((predicted == self.sets.held_out[use].given).mean())

        with threadpool_limits(self.threads):
            candidates = self._computed() if self.extractors else [self.given]
            found = [(candidate, estimated(candidate)) for candidate in candidates]
            shares = [float((errors.network == errors.given).mean()) for _, errors in found]
            best, errors = found[int(np.argmax(shares))]
            network, baseline = best.network(errors.probabilities, names, recipe, seed), None
            if self.baseline:
                baseline = best.network(np.eye(len(names))[self.labels], names, recipe, seed)

            accuracies = []
            for use, each in self.sets.held_out.items():
                before = accuracy(baseline, use) if baseline else None
                accuracies.append(Accuracy(use, len(each), before, accuracy(network, use)))
        outcome = Outcome(CorrectedLabels(images, errors), network, accuracies, self.about)
        if best.extractor is None:
            return outcome
        choice = dict(zip((each.words for each in self.extractors), shares, strict=True))
        self.extractors = [best.extractor]
        about = {**self.about, "choice": choice_in_words(choice)}
        return replace(outcome, about=about, choice=choice)

    def _computed(self) -> Iterator[Candidate]:
        """Candidates of all features, which are computed before training: images that cannot be
        decoded are named at once."""
        of = partial(image_features.of_set, device=self.device)
        every = [(each, self._of_all_sets(partial(of, extractor=each))) for each in self.extractors]
        for extractor, features in every:
            train = features.pop("train")
            check_different(f"{extractor.words} of {self.sets.train.source!r}", train)
            axes = Axes.of(train)
            data = FeatureSet(axes.project(train), self.labels)
            yield Candidate(data, features, extractor, axes)


def _check_paths(file: str, sets: LabelledSets) -> None:
    """Raises UserError if a path, relative to its set's folder, names images of two sets."""
    if file.endswith(".npy") and sets.held_out:
        raise UserError(
            f"features {file!r}: an .npy has no paths to tell the {' or '.join(sets.held_out)} set "
            "from the training set; expected an .npz with 'features' and 'paths'"
        )
    check_apart(f"features {file!r}", {use: each.paths for use, each in sets.by_use.items()})


class ByProbabilities:
    """Finds wrong labels by given probabilities; nothing is trained."""

    about: Mapping[str, str] = {"images": "given probabilities; no network is trained"}

    def __init__(self, images: LabelledImages, file: str) -> None:
        self.images, classes = images, images.class_names
        numbers, columns = read_rows(file, images, "probabilities")
        # Without names columns are in the order of the classes, which text with numbers has not.
        in_order = columns is None and sorted(classes) == list(classes)
        names = list(classes) if in_order else columns or []
        if others := [name for name in names if name not in classes]:
            raise UserError(f"probabilities {file!r}: no image has labels {others}; leave them out")
        if columns is None and not in_order:
            raise UserError(
                f"probabilities {file!r}: class names with numbers have more than one order, "
                "expected an .npz with an array 'class_names' of text"
            )
        if len({*names}) < len(names):
            raise UserError(f"probabilities {file!r}: 'class_names' {names}, expected each once")
        if sorted(names) != sorted(classes) or numbers.shape[1] != len(classes):
            raise UserError(
                f"probabilities {file!r}: {numbers.shape[1]} columns for {len(classes)} classes, "
                f"expected one for each; an array 'class_names' with {classes[-1]!r} and the other "
                "classes says their order"
            )
        self.probabilities = numbers.astype(np.float32)[:, [names.index(name) for name in classes]]
        problems = Problems()
        wrong = (self.probabilities < 0).any(axis=1) | ~self.probabilities.any(axis=1)
        for i in np.flatnonzero(wrong):
            problems.add("negative numbers, or zeros alone", images.show(int(i)))
        problems.raise_if_any(f"probabilities {file!r}")

    def plan(self) -> None:
        print("no network is trained")

    def work(self) -> Outcome:
        images = self.images
        errors = find_label_errors(images.given, self.probabilities, images.class_names)
        return Outcome(CorrectedLabels(images, errors), None, [], self.about)
