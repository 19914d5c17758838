"""Relabelling by features or probabilities of any model: seconds, in this process."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo.data.input_problems import Problems
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.relabel.judge import training
from chainer_jo.relabel.judge.features import HIDDEN, FeatureSet
from chainer_jo.relabel.judge.label_errors import LabelErrors, find_label_errors
from chainer_jo.relabel.judge.training import Recipe
from chainer_jo.relabel.read.feature_table import read_features, read_rows
from chainer_jo.relabel.read.labelled_images import LabelledSets
from chainer_jo.relabel.show.outcome import Outcome, Relabeller, accuracies_of
from chainer_jo.relabel.write.corrected_labels import CorrectedLabels
from chainer_jo.relabel.write.trained_network import Member, TrainedNetwork


class ByFeatures(Relabeller):
    """Trains small networks on features, on one CPU process: steps are too short for a GPU."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.sets = flags.own.sets
        fields = ("alpha", "beta", "learning_rate", "epochs", "prior")
        given = {f: value for f in fields if (value := getattr(flags, f)) is not None}
        default = Recipe()
        if flags.epochs:  # labels are updated from the same part of training on
            given["quiet"] = round(default.quiet / default.epochs * flags.epochs)
            given["average"] = max(1, round(default.average / default.epochs * flags.epochs))
        self.recipe = replace(default, **given)
        self.open()

    def open(self) -> None:
        """Reads the features from the file."""
        _check_paths(self.flags.features, self.sets)
        train = self.sets.train
        with threadpool_limits(self.flags.threads):
            self.data = FeatureSet(read_features(self.flags.features, train), train.labels)
        self.others = {
            use: read_features(self.flags.features, images)
            for use, images in self.sets.held_out.items()
        }

    @property
    def images(self) -> str:
        """Description of the features and the network."""
        mean, scale = self.data.normalisation
        own = ", each divided by its own standard deviation" if scale.ndim else ""
        return f"{len(mean)} features each{own}; network with one hidden layer"

    @property
    def about(self) -> dict[str, str]:
        recipe = self.recipe
        return {
            "images": self.images,
            "training": f"{recipe.folds}-fold cross-validation with "
            f"{recipe.number_of_seeds(len(self.sets.train))} seeds, {recipe.epochs} epochs each, "
            f"label updates from epoch {recipe.quiet + 1}; then {recipe.epochs} epochs on the new "
            "labels",
            "settings": f"alpha {recipe.alpha:g}, beta {recipe.beta:g}, learning rate "
            f"{recipe.learning_rate:g}",
            "device": "cpu, fp32",
        }

    def plan(self) -> None:
        print("estimated time: seconds for thousands of images, minutes for hundreds of thousands")

    def work(self) -> Outcome:
        with threadpool_limits(self.flags.threads):
            return self.outcome(self.judged(self.data))

    def judged(self, data: FeatureSet) -> LabelErrors:
        """Label errors by networks trained on these features."""
        images, bar = self.sets.train, Progress("Training", "epochs", 1)

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done)

        names, seed = images.class_names, self.flags.seed
        errors = training.judge(data, images.labels, names, self.recipe, seed, progress)
        bar.finish(bar.total)
        return errors

    def outcome(self, errors: LabelErrors) -> Outcome:
        """The outcome, with networks trained on the new labels and, if asked for, on the given."""
        images, held_out = self.sets.train, self.sets.held_out
        network, baseline = self.network(errors.probabilities.astype(np.float32)), None
        if self.flags.baseline:
            baseline = self.network(
                np.eye(len(images.class_names), dtype=np.float32)[images.labels]
            )
        accuracies = accuracies_of(
            (baseline, network), held_out, lambda each, use: each.of_features(self.others[use])
        )
        return Outcome(CorrectedLabels(images, errors), network, accuracies, self.about)

    def network(self, labels: np.ndarray) -> TrainedNetwork:
        """Network trained on labels (n, c) of all images."""
        network = training.second_step(self.data, labels, self.recipe, self.flags.seed)
        classes, (mean, scale) = self.sets.class_names, self.data.normalisation
        about = {"classes": classes, "features": len(mean), "hidden": HIDDEN}
        normalisation = {"mean": mean, "scale": scale}
        return TrainedNetwork(about, [Member.of(network.predictor, normalisation)])


def _check_paths(file: str, sets: LabelledSets) -> None:
    """Raises UserError if a path names images of two sets: it is relative to the set's folder."""
    if file.endswith(".npy") and sets.held_out:
        raise UserError(
            f"features {file!r}: an .npy has no paths, so its rows are of one set alone; expected "
            f"an .npz with 'features' and 'paths' beside a {' or '.join(sets.held_out)} set"
        )
    owner: dict[str, str] = {}
    for use, images in {"train": sets.train, **sets.held_out}.items():
        for path in images.paths:
            if (other := owner.setdefault(path, use)) != use:
                raise UserError(
                    f"features {file!r}: {path!r} is in the {other} and in the {use} set, expected "
                    "paths that tell them apart"
                )


class ByProbabilities(Relabeller):
    """Judges labels by given probabilities; nothing is trained."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.images = images = flags.own.sets.train
        file, classes = flags.probabilities, images.class_names
        numbers, names = read_rows(file, images, "probabilities")
        if names is None:
            if sorted(classes) != list(classes):
                raise UserError(
                    f"probabilities {file!r}: names with numbers such as {classes[-1]!r} have more "
                    "than one order, expected an array 'class_names', what the columns stand for"
                )
            names = classes
        width = numbers.shape[1]
        if sorted(names) != sorted(classes) or width != len(classes):
            raise UserError(
                f"probabilities {file!r}: {width} columns for classes {', '.join(names[:5])}, "
                f"expected one for each of the {len(classes)} of the labels; an array "
                "'class_names' says their order"
            )
        self.probabilities = numbers.astype(np.float32)[:, [names.index(name) for name in classes]]
        problems = Problems()
        wrong = (self.probabilities < 0).any(axis=1) | ~self.probabilities.any(axis=1)
        for i in np.flatnonzero(wrong):
            problems.add("negative numbers, or zeros alone", images.show(int(i)))
        problems.raise_if_any(f"probabilities {file!r}")

    @property
    def about(self) -> dict[str, str]:
        return {"images": "given probabilities; no network is trained"}

    def plan(self) -> None:
        print("no network is trained")

    def work(self) -> Outcome:
        images = self.images
        errors = find_label_errors(self.probabilities, images.labels, images.class_names)
        return Outcome(CorrectedLabels(images, errors), None, [], self.about)
