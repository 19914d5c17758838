"""Relabelling by features that any model has computed of the images: seconds, in this process."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial

import chainer
import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo import files
from chainer_jo.datasets.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.functions import providers
from chainer_jo.relabel import training, tuning
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.feature_input import FeatureInput, FeatureSet
from chainer_jo.relabel.feature_table import read_features
from chainer_jo.relabel.kept_trials import KeptTrials
from chainer_jo.relabel.label_errors import find_label_errors
from chainer_jo.relabel.labelled_images import LabelledSets
from chainer_jo.relabel.outcome import HELD_OUT, Accuracy, Outcome, Trial, choice, trial_rows
from chainer_jo.relabel.trained_network import TrainedNetwork
from chainer_jo.relabel.training import Settings
from chainer_jo.report.grid import aligned
from chainer_jo.training.extensions import Paused
from chainer_jo.training.many_ranks import Ranks


class ByFeatures:
    """One invocation. A few thousand small steps gain nothing from a GPU, other processes or ranks:
    the first does it all."""

    def __init__(self, flags: argparse.Namespace, ranks: Ranks) -> None:
        self.flags = flags
        self.sets = flags.own.sets
        if flags.size or flags.flip or flags.weights:
            raise UserError("--features: expected without --size, --flip and --resnet50-weights")
        fields = ("alpha", "beta", "learning_rate", "epochs", "prior")
        given = {f: value for f in fields if (value := getattr(flags, f)) is not None}
        default = Settings()
        if flags.epochs:  # labels are updated from the same part of training on
            given["quiet"] = round(default.quiet / default.epochs * flags.epochs)
            given["average"] = max(1, round(default.average / default.epochs * flags.epochs))
        tried = tuning.candidates(default) if flags.tune else [default]
        self.candidates = list(dict.fromkeys(replace(settings, **given) for settings in tried))
        _check_paths(flags.features, self.sets)
        self.features = read_features(flags.features, self.sets.train)
        self.others = {
            use: (read_features(flags.features, images), images.labels)
            for use in ("validation", "test")
            if (images := getattr(self.sets, use))
        }

    @property
    def about(self) -> dict[str, str]:
        """How it is computed."""
        settings = self.candidates[0]
        return {
            "images": f"by {self.features.shape[1]} features each: one hidden layer",
            "training": f"{settings.epochs} epochs with labels updated from epoch "
            f"{settings.quiet + 1} on, {settings.folds} times on all images but a part; then "
            f"{settings.epochs} epochs on the new labels",
            "device": "cpu, fp32",
        }

    def plan(self) -> None:
        """Says what would be run."""
        print(
            f"{len(self.candidates)} settings, a small training to compare each and three more: "
            "seconds for thousands of images, minutes for hundreds of thousands"
        )

    def work(self) -> Outcome | None:
        """Everything; None if the time was up."""
        threads = self.flags.threads
        # Numbers that are not finite are looked for in what training comes to.
        with threadpool_limits(threads), np.errstate(all="ignore"):
            provider = providers.choose(chainer.get_device("@numpy"))
            providers.use(provider)
            if provider is not None:
                provider.set_threads(threads)
            try:
                return self._work()
            except Paused:
                return None

    def _work(self) -> Outcome:
        images = self.sets.train
        given, classes = images.labels, len(images.class_names)
        data = FeatureSet(self.features)
        trials = self._compare(data, given, classes)
        chosen = tuning.choose(trials)
        errors = find_label_errors(chosen.probabilities, given)
        shown = [
            Trial(s.alpha, s.beta, s.learning_rate, trial.accuracy, trial is chosen)
            for trial in trials
            for s in [trial.settings]
        ]
        if len(shown) > 1:
            print(*aligned(trial_rows(shown)), f"chosen: {choice(shown)}", sep="\n", flush=True)
        labels = errors.probabilities.astype(np.float32)
        everything = np.arange(len(images))
        seed, settings = self.flags.seed, chosen.settings
        model = training.second_step(data, everything, labels, settings, seed)
        if not all(np.isfinite(parameter.array).all() for parameter in model.params()):
            raise UserError(
                f"training on the new labels diverged ({_in_words(settings)}), expected a smaller "
                "--learning-rate"
            )
        mean, scale = data.look
        about = {
            "classes": images.class_names,
            "features": self.features.shape[1],
            "hidden": data.hidden,
        }
        look = {"mean": mean, "scale": np.float32(scale)}
        called = errors.probability_given[errors.wrong]
        return Outcome(
            CorrectedLabels(images, labels, float(called.max()) if len(called) else 0.0),
            TrainedNetwork.of(about, model.predictor, look),
            shown,
            self._accuracies(data, labels, settings),
            {**self.about, "settings": _in_words(settings)},
        )

    def _compare(
        self, data: FeatureSet, given: np.ndarray, classes: int
    ) -> list[tuning.Trial[Settings]]:
        """All settings, tried on all images; what was tried before is known."""
        bar, done = Progress("Training", "settings", len(self.candidates)), 0

        def check_time() -> None:
            if self.flags.deadline and time.time() >= self.flags.deadline:
                raise Paused

        about = f"{self.sets.train.fingerprint} {files.digest(self.flags.features)}"
        seed = self.flags.seed
        kept = KeptTrials(self.flags.out / "trials", f"{about} seed {seed}", check_time)

        def out_of_sample(settings: Settings) -> np.ndarray:
            nonlocal done
            what = data, given, classes, settings, seed
            probabilities = kept.once(settings, partial(training.out_of_sample, *what))
            done += 1
            bar.update(done)
            return probabilities

        trials = tuning.compare(self.candidates, out_of_sample, given)
        bar.finish(done)
        return trials

    def _accuracies(
        self, data: FeatureSet, labels: np.ndarray, settings: Settings
    ) -> list[Accuracy]:
        """Of two networks alike but for their labels, on images that neither is trained on."""
        images = self.sets.train
        trained_on, held_back = self.flags.own.rows
        classes = len(images.class_names)
        one_hot = np.eye(classes, dtype=np.float32)[images.labels]
        models = [
            training.second_step(data, trained_on, y[trained_on], settings, self.flags.seed)
            for y in (one_hot, labels)
        ]
        parts = {
            HELD_OUT: (
                self.features[held_back],
                images.labels[held_back],
            ),
            **self.others,
        }
        found = []
        for name, (features, expected) in parts.items():
            if not len(expected):
                continue
            inputs = FeatureInput(features, *data.look)
            predictions = (training.predict(model, inputs) for model in models)
            shares = (
                float((predicted.argmax(axis=1) == expected).mean())
                if np.isfinite(predicted).all()
                else None
                for predicted in predictions
            )
            found.append(Accuracy(name, len(expected), *shares))
        return found


def _check_paths(file: str, sets: LabelledSets) -> None:
    """That no row is of images in two sets: paths are relative, each set's to its own folder."""
    owner: dict[str, str] = {}
    for use in ("train", "validation", "test"):
        for path in images.paths if (images := getattr(sets, use)) else ():
            if (other := owner.setdefault(path, use)) != use:
                raise UserError(
                    f"features {file!r}: {path!r} is in the {other} and in the {use} set, expected "
                    "paths that tell them apart"
                )


def _in_words(settings: Settings) -> str:
    return (
        f"alpha {settings.alpha:g}, beta {settings.beta:g}, "
        f"learning rate {settings.learning_rate:g}"
    )
