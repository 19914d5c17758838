"""Relabelling by the images themselves: the paper's two steps, as runs that can be continued."""

from __future__ import annotations

import argparse
import functools
import logging
import math
from collections.abc import Sequence
from dataclasses import replace

import chainer
import numpy as np
from chainer import serializers

from chainer_jo.commands.dry_run import run_lines
from chainer_jo.cores import usable_cores
from chainer_jo.datasets import augmentation
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.functions import providers
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.joint_objective import JointObjective
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.links.resnet50 import ResNet50
from chainer_jo.paper.settings import HyperParameters
from chainer_jo.relabel import own_data
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.decoded_images import usual_size
from chainer_jo.relabel.outcome import HELD_OUT, Accuracy, Outcome, Trial, choice, trial_rows
from chainer_jo.relabel.study import CROP, RESIZE, RelabelStudy, large_images, small_images
from chainer_jo.relabel.trained_network import TrainedNetwork
from chainer_jo.relabel.tuning import surely_best
from chainer_jo.report.grid import aligned
from chainer_jo.scheduling.cost import MEASURED, Cost, duration, probe
from chainer_jo.scheduling.local_pool import LocalPool
from chainer_jo.scheduling.many_ranks import Team
from chainer_jo.scheduling.scheduler import Scheduler, pending
from chainer_jo.scheduling.status import Status
from chainer_jo.training.many_ranks import Ranks

_logger = logging.getLogger(__name__)

#: Pixels of a side up to which images are learnt from scratch.
SMALL = 64


class ByImages:
    """One invocation; of many ranks the first alone has it."""

    def __init__(self, flags: argparse.Namespace, ranks: Ranks) -> None:
        self.ranks = ranks
        self.flags = flags
        self.sets = flags.own.sets
        self.trained_on, self.held_back = flags.own.rows
        self.side = self._side()
        self.jobs = 1 if ranks.size > 1 else flags.jobs
        self.settings = Settings(
            device=flags.device,
            deadline=flags.deadline,
            weights=flags.weights,
            workers=max(1, usable_cores() // self.jobs - 1),
        )
        self.store = RunStore(flags.out)
        self.study = self._study()
        self.names: dict[Experiment, str] = {}

    def _side(self) -> int | None:
        """Pixels of the images that are learnt from scratch; None for ResNet-50."""
        size = self.flags.size
        if size is not None and size > SMALL:
            raise UserError(
                f"--size {size}: expected 8 to {SMALL} pixels, or for larger images "
                "--resnet50-weights FILE or --features FILE without --size"
            )
        side = size or usual_size(self.sets.train)
        if side <= SMALL:
            if self.flags.weights:
                _logger.warning(
                    "--resnet50-weights: not used, images of %d pixels are learnt from scratch",
                    side,
                )
            return side
        if self.flags.weights:
            return None
        raise UserError(
            f"data {self.flags.data!r}: images of about {side} pixels, which need "
            f"--resnet50-weights FILE, --features FILE, or --size {SMALL} or less to shrink them"
        )

    def _study(self) -> RelabelStudy:
        flags, fields = self.flags, {"seed": self.flags.seed}
        fields["prior"] = "uniform" if flags.prior == "uniform" else None
        name, number, epochs = own_data.NAME, len(self.trained_on), flags.epochs
        if self.side is None:
            study = large_images(name, flags.weights, number, epochs, **fields)
        else:
            study = small_images(name, self.side, number, epochs, flags.flip, **fields)
        given = {
            field: value
            for field in ("alpha", "beta", "learning_rate")
            if (value := getattr(flags, field)) is not None
        }
        candidates = dict.fromkeys(replace(c, **given) for c in study.candidates)
        return replace(study, candidates=tuple(candidates)[: None if flags.tune else 1])

    @property
    def about(self) -> dict[str, str]:
        """How it is computed."""
        study, sgd = self.study, self.study.second_step_sgd
        if self.side is None:
            seen = f"resized to {RESIZE} pixels, the centre of {CROP}: ResNet-50 from weights"
        else:
            stages = ", ".join(
                f"{units} of {width}"
                for units, width in zip(study.network.units, study.network.widths, strict=True)
            )
            seen = f"{self.side} x {self.side} pixels: PreAct ResNet, units and filters {stages}"
        return {
            "images": seen,
            "training": f"{study.epochs} epochs with labels updated from epoch {study.start} on, "
            f"then {sgd.epochs} epochs on the new labels; batches of {sgd.batch_size}",
            "device": f"{self.flags.device}, {study.precision}",
        }

    def plan(self) -> None:
        """Says what would be run."""
        tuning, steps = self._tuning(), self._steps(self.study.candidates[0])
        experiments = [*tuning, *steps]
        waiting = {*pending(experiments, self.store), *self._lost(steps)}
        cost = self._cost(experiments)
        if cost.basis != MEASURED:
            cost = cost.tried(self._tried(experiments[-1]))
        name = self.names.__getitem__
        print(*run_lines(experiments, waiting, self.store, cost, name), sep="\n")
        left = sum(map(cost.seconds, waiting)) / self.jobs
        print(
            f"{len(experiments)} runs, {len(waiting)} to do, in about {duration(left)} "
            f"({cost.basis})"
        )

    def work(self) -> Outcome | None:
        """Everything; None if the time was up."""
        self.data = self.load()
        tuning = self._tuning()
        if tuning:
            print(f"trying {len(tuning)} settings in short runs", flush=True)
            if not self._run(tuning):
                return None
        trials = self._trials(tuning)
        parameters = self.study.candidates[0]
        if trials:
            print(*aligned(trial_rows(trials)), f"chosen: {choice(trials)}", sep="\n", flush=True)
            parameters = self.study.candidates[[trial.chosen for trial in trials].index(True)]
        first, second, baseline = steps = self._steps(parameters)
        for experiment in self._lost(steps):
            self.store.forget(experiment)
        if not self._run(steps):
            return None
        for experiment in (first, second):
            if self.store.result(experiment)["state"] == "diverged":
                raise UserError(
                    f"training diverged ({self.names[experiment]}, learning rate "
                    f"{experiment.optimization.learning_rate:g}), expected a smaller "
                    "--learning-rate"
                )
        network = self._network(second)
        return Outcome(
            CorrectedLabels(self.sets.train, self._labels(first, network)),
            network,
            trials,
            self._accuracies(baseline, second),
            {**self.about, "settings": _settings(parameters)},
            {"first step": first, "second step": second, "labels as given": baseline},
        )

    def _tuning(self) -> list[Experiment]:
        tuning = self.study.tuning()
        self.names |= {e: f"settings {i} of {len(tuning)}" for i, e in enumerate(tuning, 1)}
        return tuning

    def _steps(self, parameters: HyperParameters) -> list[Experiment]:
        first = self.study.first_step(parameters)
        steps = [first, self.study.second_step(first), self.study.baseline()]
        names = "new labels", "network on them", "network on given ones"
        self.names |= dict(zip(steps, names, strict=True))
        return steps

    def _lost(self, steps: Sequence[Experiment]) -> list[Experiment]:
        """The finished ones of the two steps whose file is gone that is read at the end."""
        return [
            experiment
            for experiment, name in zip(steps[:2], ("labels.npz", "model.npz"), strict=True)
            if self.store.result(experiment)
            and not self.store.diverged(experiment)
            and not (self.store.folder(experiment) / name).exists()
        ]

    @functools.cached_property
    def load(self):
        """Gives the data, in this process and, as it can be sent there, in others."""
        return functools.partial(self.flags.own.load, self.side)

    def _run(self, experiments: Sequence[Experiment]) -> bool:
        waiting = pending(experiments, self.store)
        cost = self._cost(experiments)
        live = self.ranks.size == 1
        begun = {e: 0 if self.store.result(e) else len(self.store.log(e)) for e in waiting}
        status = Status(len(waiting), cost, self.jobs, live, self.names.__getitem__, begun)
        seconds = sum(map(cost.seconds, waiting)) / self.jobs
        if waiting and not math.isnan(seconds):
            print(f"{len(waiting)} runs, about {duration(seconds)}", flush=True)
        settings = self.settings
        if self.ranks.size > 1:
            what = self.store, lambda: self.data, settings, self.ranks
            workers = Team(*what, status.show)
        else:
            threads = self.flags.threads
            pool = LocalPool(self.store, self.load, settings, self.jobs, threads)
            workers = Scheduler(self.store, pool, status.show, settings.deadline)
        try:
            return workers.work(experiments)
        finally:
            status.close()

    def _cost(self, experiments: Sequence[Experiment]) -> Cost:
        batches = len(self.trained_on) / self.study.second_step_sgd.batch_size
        return Cost.of(self.store, [*self.study.tuning(), *experiments], batches, None)

    def _tried(self, experiment: Experiment) -> float | None:
        if self.side is None or self.ranks.size > 1:
            return None
        shape = self.side, self.side, 3
        return probe(experiment, shape, self.settings, self.flags.threads)

    def _trials(self, tuning: Sequence[Experiment]) -> list[Trial]:
        """What the short runs came to. A tenth of noisy labels tells small differences from luck
        badly, so the default is left only for what is surely better."""
        if not tuning:
            return []
        found = [self._tail_accuracy(experiment) for experiment in tuning]
        if all(accuracy is None for accuracy in found):
            raise UserError("training diverged with all settings, expected a lower --learning-rate")
        best = surely_best(found, len(self.data.validation))
        return [
            Trial(e.alpha, e.beta, e.optimization.learning_rate, accuracy, i == best)
            for i, (e, accuracy) in enumerate(zip(tuning, found, strict=True))
        ]

    def _tail_accuracy(self, experiment: Experiment) -> float | None:
        """Mean over the last epochs, as many as labels are averaged over: with a high learning rate
        it goes up and down."""
        if self.store.result(experiment)["state"] == "diverged":
            return None
        log = self.store.log(experiment)
        last = log[-(experiment.relabelling.average or len(log)) :]
        return float(np.mean([entry["validation"] for entry in last]))

    def _network(self, experiment: Experiment) -> TrainedNetwork:
        classes = self.sets.class_names
        description, look = experiment.network, {}
        about = {"classes": classes, "resize": RESIZE, "crop": CROP}
        if description.weights:
            about["variant"] = description.weights.partition("-")[0]
            network = ResNet50(len(classes), about["variant"])
        else:
            about |= {"resize": self.side, "crop": self.side}
            about |= {"units": description.units, "widths": description.widths}
            network = PreActResNet(3, len(classes), description.units, description.widths)
            look = {"mean": augmentation.mean_image(self.data.train.images)}
        prior = np.full(len(classes), 1 / len(classes))
        model = Classifier(network, JointObjective(prior))
        serializers.load_npz(self.store.folder(experiment) / "model.npz", model)
        return TrainedNetwork.of(about, network, look)

    def _labels(self, first_step: Experiment, network: TrainedNetwork) -> np.ndarray:
        """The soft labels (n, c) of all images: the first step's, and for those that were held back
        what the network says that was trained on these."""
        images = self.sets.train
        labels = np.empty((len(images), len(images.class_names)), np.float32)
        labels[self.trained_on] = self.store.labels(first_step)
        name = self.flags.device
        device = chainer.get_device("@numpy" if name == "cpu" else f"@cupy:{name[5:]}")
        device.use()
        provider = providers.choose(device, self.study.precision)
        if provider is not None:
            provider.keep_choices(self.store.root)
        providers.use(provider)
        labels[self.held_back] = network.of_images(images.files(self.held_back), device)
        return labels

    def _accuracies(self, baseline: Experiment, second_step: Experiment) -> list[Accuracy]:
        names = {"validation": "validation" if self.sets.validation else HELD_OUT, "test": "test"}
        results = [self.store.result(e).get("last", {}) for e in (baseline, second_step)]
        data: LabelledData = self.data
        return [
            Accuracy(name, len(getattr(data, use)), *(result.get(use) for result in results))
            for use, name in names.items()
            if getattr(data, use) is not None
        ]


def _settings(parameters: HyperParameters) -> str:
    return (
        f"alpha {parameters.alpha:g}, beta {parameters.beta:g}, "
        f"learning rate {parameters.learning_rate:g}"
    )
