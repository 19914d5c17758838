"""Relabelling by training on the images: the paper's two steps for each fold left out, as runs
that can be resumed."""

from __future__ import annotations

import argparse
import functools
import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from chainer import serializers

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.errors import UserError
from chainer_jo.method import augmentation
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.paper.settings import CLOTHING1M_SIDE
from chainer_jo.relabel.judge.folds import folds, same_files
from chainer_jo.relabel.judge.label_errors import find_label_errors
from chainer_jo.relabel.judge.settings import FOLDS, large_images, small_images
from chainer_jo.relabel.read import own_data
from chainer_jo.relabel.read.own_data import usual_size
from chainer_jo.relabel.show.outcome import Outcome, Relabeller, accuracies_of
from chainer_jo.relabel.write.corrected_labels import CorrectedLabels
from chainer_jo.relabel.write.trained_network import Member, TrainedNetwork, untrained
from chainer_jo.report.dry_run import run_lines
from chainer_jo.runs.computing_flags import spare_threads
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.local_pool import LocalPool
from chainer_jo.runs.presets import REAL, Study
from chainer_jo.runs.run import Settings, device_of
from chainer_jo.runs.runner import Runner, duration
from chainer_jo.runs.store import DONE_AGAIN, RunStore, without_digest

_logger = logging.getLogger(__name__)

#: Largest side of images that are learnt from scratch, in pixels.
MAX_SIDE = 64


class ByImages(Relabeller):
    """Trains networks on the images, each without one fold, which it then judges."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.sets = flags.own.sets
        self.side = self._side()
        self.settings = Settings(
            device=flags.device,
            deadline=flags.deadline,
            weights=flags.weights,
            workers=max(1, usable_cores() // flags.jobs - 1),
        )
        self.store = RunStore(flags.out)
        self.study = self._study()
        spare_threads(flags, self.study.preset)

    def _side(self) -> int | None:
        """Pixels along a side of images that are learnt from scratch; None for ResNet-50."""
        size = self.flags.size
        if size is not None and size > MAX_SIDE:
            raise UserError(
                f"--size {size}: expected 8 to {MAX_SIDE} pixels; for larger images use "
                "--resnet50-weights FILE or features (the default)"
            )
        side = size or usual_size(self.sets.train)
        if side <= MAX_SIDE:
            if self.flags.weights:
                raise UserError(
                    f"--resnet50-weights: expected images of over {MAX_SIDE} pixels, these have "
                    f"{side}; --from-scratch trains the paper's network"
                )
            return side
        if self.flags.weights:
            return None
        raise UserError(
            f"data {self.flags.data!r}: images of about {side} pixels, expected --from-scratch "
            f"with --size {MAX_SIDE} or less, or features (the default)"
        )

    def _study(self) -> Study:
        flags, number = self.flags, len(self.sets.train) * (FOLDS - 1) // FOLDS
        if self.side is None:
            preset = large_images(flags.weights, number, flags.epochs)
        else:
            preset = small_images(self.side, number, flags.epochs, flags.flip)
        # Files of the same content make a fold larger, and leave less than `number` to train on.
        fewest = len(self.fold_of) - int(np.bincount(self.fold_of).max())
        preset = replace(preset, batch_size=min(preset.batch_size, fewest))
        prior = "uniform" if flags.prior == "uniform" else None
        return Study(preset, own_data.NAME, seed=flags.seed, prior=prior)

    @functools.cached_property
    def fold_of(self) -> np.ndarray:
        """Fold (n,) of each image; files of the same content are in one."""
        labels = self.sets.train.labels
        return folds(labels, FOLDS, self.flags.seed, self.duplicates).astype(np.int8)

    @functools.cached_property
    def duplicates(self) -> list[np.ndarray]:
        """Groups of files with the same content."""
        images = self.sets.train
        return same_files(images.files(), images.sizes)

    @property
    def about(self) -> dict[str, str]:
        preset, (first, second) = self.study.preset, self.steps[0]
        others = {}
        if self.side is None:
            seen = (
                f"resized to {preset.resize} pixels, the centre of {preset.crop}: ResNet-50 from "
                "weights"
            )
        else:
            others["photographs"] = (
                "features (without --from-scratch) take seconds and detect far more errors in a "
                "few thousand photographs than a network trained from scratch"
            )
            sizes = zip(first.network.units, first.network.widths, strict=True)
            stages = ", ".join(f"{units} of {width}" for units, width in sizes)
            seen = f"{self.side} x {self.side} pixels: PreAct ResNet, units and filters {stages}"
        return {
            "images": seen,
            "training": f"{first.optimization.epochs} epochs with labels updated from epoch "
            f"{self.study.epochs(preset.first_step.start_epoch)}, then "
            f"{second.optimization.epochs} epochs on the new labels; {FOLDS}-fold "
            f"cross-validation; batches of {preset.batch_size}",
            "settings": f"alpha {first.alpha:g}, beta {first.beta:g}, learning rate "
            f"{first.optimization.learning_rate:g}",
            "device": f"{self.flags.device}, {first.precision}",
            **others,
        }

    def plan(self) -> None:
        runner = self.runner
        waiting = {*runner.left(), *self._lost()}
        left = {e: self.store.epochs_left(e) for e in self.names if e in waiting}
        print(*run_lines(runner, left), sep="\n")
        print(
            f"{len(self.names)} runs, {len(left)} to do, in about "
            f"{duration(runner.seconds(left))} ({runner.cost.basis})"
        )

    def work(self) -> Outcome | None:
        seen_later = list(self.sets.held_out.values())
        if self.side is None:
            seen_later.append(self.sets.train)
        for images in seen_later:
            own_data.check(images, self.side or CLOTHING1M_SIDE)
        self.data = self.load()
        experiments = list(self.names)
        self._check_data(experiments)
        if note := without_digest([r for e in experiments if (r := self.store.result(e))]):
            _logger.warning("--out %s: %s", self.flags.out, note)
        self.store.forget(*self._lost())
        if not self._run():
            return None
        self._check_data(experiments)  # another command may have been at work here as well
        for experiment in experiments:
            if self.store.diverged(experiment):
                raise UserError(
                    f"training diverged ({self.names[experiment]}, learning rate "
                    f"{experiment.optimization.learning_rate:g}), expected a smaller "
                    "--learning-rate"
                )
        images, networks = self.sets.train, [self._network(steps[1]) for steps in self.steps]
        probabilities = np.empty((len(images), len(images.class_names)), np.float32)
        self._use_device()
        for fold, network in enumerate(networks):
            rows = np.flatnonzero(self.fold_of == fold)
            probabilities[rows] = network.of_images(images.files(rows), self.device)
        errors = find_label_errors(
            probabilities, images.labels, images.class_names, self.duplicates
        )
        baselines = [self._network(experiment) for experiment in self.baselines]
        network = _together(networks)
        return Outcome(
            CorrectedLabels(images, errors),
            network,
            accuracies_of(
                (_together(baselines) if baselines else None, network),
                self.sets.held_out,
                lambda each, use: each.of_images(self.sets.held_out[use].files(), self.device),
            ),
            self.about,
            {self.names[e]: e for steps in self.steps for e in steps},
        )

    def _check_data(self, experiments: Sequence[Experiment]) -> None:
        """Raises UserError for runs on other labels, or files rewritten since at the same size."""
        made = {e: result["data"] for e in experiments if (result := self.store.result(e))}
        left_out = {e.data.left_out for e in made}
        now = {fold: self.data.without(fold).fingerprint() for fold in left_out}
        for experiment, fingerprint in made.items():
            if fingerprint != now[experiment.data.left_out]:
                raise UserError(
                    f"--out {self.flags.out}: {self.names[experiment]}: trained on other pixels or "
                    "labels; expected the same images and labels, or another --out folder"
                )

    @functools.cached_property
    def steps(self) -> list[tuple[Experiment, Experiment]]:
        """First and second step (Section 4.1) of the paper without each fold: training with label
        updates, and a fresh network on the final labels."""
        given = {name: getattr(self.flags, name) for name in ("alpha", "beta", "learning_rate")}
        return [
            (study.first_step(*REAL, 0, **given), study.joint(*REAL, 0, **given))
            for study in self._studies
        ]

    @functools.cached_property
    def baselines(self) -> list[Experiment]:
        """Networks on the labels as given, if the flag asks for them."""
        if not self.flags.baseline:
            return []
        return [study.baseline("cross_entropy", *REAL, 0) for study in self._studies]

    @property
    def _studies(self) -> list[Study]:
        """Studies, each without one fold."""
        return [replace(self.study, left_out=fold) for fold in range(FOLDS)]

    @functools.cached_property
    def names(self) -> dict[Experiment, str]:
        """Names of the runs."""
        names = {}
        for fold, steps in enumerate(self.steps, 1):
            for experiment, name in zip(steps, ("new labels", "network on them"), strict=True):
                names[experiment] = f"{name}, {fold} of {FOLDS}"
        for fold, experiment in enumerate(self.baselines, 1):
            names[experiment] = f"network on given ones, {fold} of {FOLDS}"
        return names

    def _lost(self) -> list[Experiment]:
        """Finished runs whose weights are gone, which are read at the end; and the first steps that
        they were trained on, if their labels are gone too."""
        last = [*(second for _, second in self.steps), *self.baselines]
        lost = [
            experiment
            for experiment in last
            if self.store.result(experiment)
            and not self.store.diverged(experiment)
            and not (self.store.folder(experiment) / "model.npz").exists()
        ]
        firsts = [e.first_step for e in lost if e.first_step]
        return [*(e for e in firsts if self.store.lost_labels(e)), *lost]

    @functools.cached_property
    def load(self):
        """Loads the data; can be pickled and called in other processes."""
        return functools.partial(self.flags.own.load, self.side, self.fold_of)

    @functools.cached_property
    def runner(self) -> Runner:
        """The runs; their time is known once one has finished."""
        name = self.names.__getitem__
        return Runner(self.store, list(self.names), self.settings, self.flags.jobs, name=name)

    def _run(self) -> bool:
        left, flags = self.runner.left(), self.flags
        seconds = self.runner.seconds(left)
        if left and not math.isnan(seconds):
            print(f"{len(left)} runs, about {duration(seconds)}", flush=True)
        pool = LocalPool(self.store, self.load, self.settings, flags.jobs, flags.threads)
        return self.runner.work(pool)

    def _network(self, experiment: Experiment) -> TrainedNetwork:
        classes = self.sets.class_names
        description, normalisation = experiment.network, {}
        about = {"classes": classes, "resize": self.study.preset.resize}
        about["crop"] = self.study.preset.crop
        if description.weights:
            about["variant"] = description.weights.partition("-")[0]
        else:
            about |= {"units": description.units, "widths": description.widths}
            trained_on = self.data.without(experiment.data.left_out).train
            normalisation = {"mean": augmentation.mean_image(trained_on.images)}
        network, prior = untrained(about), np.full(len(classes), 1 / len(classes))
        model = Classifier(network, JointObjective(prior))
        path = self.store.folder(experiment) / "model.npz"
        # Chainer's own load_npz would unpickle whatever the file holds.
        with files.expected(path, f"it removed, {DONE_AGAIN}"):
            serializers.NpzDeserializer(files.arrays(path)).load(model)
        return TrainedNetwork(about, [Member.of(network, normalisation)])

    def _use_device(self) -> None:
        """Selects the device and backend on which images are classified at the end."""
        self.device = device_of(self.flags.device)
        self.device.use()
        backend = choose_backend(self.device, self.study.preset.precision)
        if backend is not None:
            backend.keep_choices(self.store.root)
        use_backend(backend)


def _together(networks: Sequence[TrainedNetwork]) -> TrainedNetwork:
    return TrainedNetwork(networks[0].about, [m for each in networks for m in each.members])
