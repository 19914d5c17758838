"""One training run, from its description to its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import chainer
import numpy as np
from chainer import training
from chainer.serializers import npz

from chainer_jo import files, seeds
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.devices import device_of
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.errors import UserError
from chainer_jo.method import cnn_crf, extensions, forward_correction  # noqa: F401  (objectives)
from chainer_jo.method.accuracy import accuracy
from chainer_jo.method.algorithm1 import first_step, second_step
from chainer_jo.method.images import Images, split_images
from chainer_jo.method.noisy_split import NoisySplit
from chainer_jo.method.objectives import OBJECTIVES, Classifier
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.resnet50 import load_resnet50
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import pretrained
from chainer_jo.reproduction.running.computation import Computation
from chainer_jo.reproduction.running.provenance import computing, provenance
from chainer_jo.reproduction.running.starting_labels import labels_of
from chainer_jo.reproduction.running.store import RunStore

#: Steps between two moments within an epoch at which there may be a checkpoint.
CHECKPOINT_STEPS = 2000
#: Lower bounds of the highest probability, by which Tables 12 and 13 divide soft labels.
CONFIDENCE_BOUNDS = (0.99, 0.95, 0.9, 0.0)


class Run:
    """A run, built from its description, that `finish` trains to its end or resumes.

    Parameters
    ----------
    experiment : what to run.
    data : the data set that it names, whole.
    store : where it is kept; the caller holds its lock.
    on_epoch : called with the run at the end of each epoch.

    Raises UserError if the data do not fit the description, or the labels of the first step are
    missing.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: LabelledData,
        store: RunStore,
        computation: Computation,
        on_epoch: Callable[[Run], None] = lambda run: None,
    ) -> None:
        self.experiment = experiment
        self.store = store
        self.computation = computation
        self.folder = store.open(experiment)
        self._snapshot = store.snapshot(experiment)
        given = replace(computation.label_files, results=store.root)
        self.split = experiment.split(data, given)
        self.device = device_of(computation.device)
        self.device.use()
        self.backend = choose_backend(self.device, experiment.precision, computation.engine)
        if self.backend is not None:
            self.backend.bind_plan_cache(store.root)
        # Stock Chainer's convolutions are cuBLAS's, which CuPy does not capture.
        on_gpu = self.device.xp is not np
        self.graph = computation.graph and on_gpu and self.backend is not None
        self._on_epoch = on_epoch
        self._build()

    def _build(self) -> None:
        experiment, split, relabelling = self.experiment, self.split, self.experiment.relabelling
        optimization, train = experiment.optimization, split.train
        objective = OBJECTIVES[experiment.objective](experiment, split)
        rng = seeds.random_state(experiment.seed, "weights", 1 if relabelling else 2)
        network = make_network(experiment, split, objective.heads, rng, self.computation.weights)
        self.model = Classifier(network, objective)
        self.model.to_device(self.device)
        labels = self._starting_labels()
        step: Callable[..., training.Trainer] = second_step
        if relabelling:
            step = partial(first_step, start=relabelling.start, stop=relabelling.stop)
        sizes = optimization.batch_size, optimization.pad
        self._images_of, self.close = split_images(
            split, network, self.device, *sizes, self.computation.workers
        )
        self.train_images = self._images_of(train)
        try:
            self.trainer = step(
                self.model,
                self.train_images,
                labels,
                optimization,
                seed=experiment.seed,
                noisy_labels=train.labels,
                true_labels=train.true_labels,
                graph=self.graph,
                out=self.folder,
            )
            self.updater = self.trainer.updater
            self._extend()
        except Exception:
            self.close()  # ends its processes
            raise

    def _starting_labels(self) -> SoftLabels:
        """The noisy labels or, of a second step, the labels of the first."""
        experiment, split = self.experiment, self.split
        labels = split.train.labels
        if experiment.first_step:
            labels = labels_of(experiment.first_step, self.store, split.fingerprint)
        rule = top = average = None
        if updates := experiment.relabelling:
            rule, top, average = updates.rule, updates.top, updates.average
        return SoftLabels(labels, split.num_classes, rule, top, average, self.device.xp)

    def _extend(self) -> None:
        split, extend, computation = self.split, self.trainer.extend, self.computation
        self.evaluation_sets = {
            name: (self._images_of(each), each.labels)
            for name, each in split.evaluation_sets.items()
        }
        extend(extensions.Evaluation(self.model, self.evaluation_sets, self.graph))
        self.best = extensions.BestEpoch(self.model, keep_weights=self._recovers_by_prediction)
        extend(self.best)
        extend(extensions.StopWhenDiverged())
        extend(training.extensions.observe_lr())
        extend(extensions.LogReport(), trigger=(1, "epoch"))
        extend(
            lambda trainer: self._on_epoch(self), name="on_epoch", trigger=(1, "epoch"), priority=0
        )
        extend(
            extensions.Checkpoint(
                self._snapshot,
                self._trained_on,
                computing(self.device, self.backend),
                seconds=computation.snapshot_seconds,
                steps=CHECKPOINT_STEPS,
                deadline=computation.deadline,
            )
        )

    @property
    def log(self) -> list[dict]:
        """The epochs so far, one dict each."""
        return self.trainer.get_extension("LogReport").log

    @property
    def _trained_on(self) -> str:
        """Identity of the run in a checkpoint: its id, fingerprint of the data and, for a second
        step, digest of the first step's labels, which may be others where it was redone."""
        first_step = self.experiment.first_step
        result = first_step and self.store.result(first_step) or {}
        labels = result.get("labels_sha256", "")[:16]
        return "-".join([self.experiment.id, self.split.fingerprint, labels]).rstrip("-")

    @property
    def _recovers_by_prediction(self) -> bool:
        """True if label accuracy is measured on predictions for the training images; of a first
        step it is measured on its labels. Tables show the labels of the first step for the joint
        method; the predictions of its second step compare like with like."""
        return self.split.noisy_labels_right is not None and not self.experiment.relabelling

    def finish(self) -> dict:
        """Trains from the latest checkpoint, or from the start, to the end, and saves and returns
        the result.

        Raises Paused if the deadline came first; the run can be continued.
        """
        use_backend(self.backend)
        try:
            with np.errstate(all="ignore"):  # Diverged says it
                self.trainer.run(show_loop_exception_msg=False)
            outcome = self._outcome()
        except extensions.Diverged as diverged:
            outcome = {"state": "diverged", "epoch": diverged.epoch}
        finally:
            self.close()
        computed = self.trainer.get_extension("Checkpoint").computed
        result = {
            "id": self.experiment.id,
            **outcome,
            "iterations": self.updater.iteration,
            "seconds": round(self.trainer.elapsed_time, 1),
            "noisy_labels_right": self.split.noisy_labels_right,
            "data": self.split.fingerprint,
            "provenance": provenance(self.device, self.backend, computed),
        }
        self.store.save_result(self.experiment, result)
        self.store.remove_temporaries(self.experiment)
        return result

    def _outcome(self) -> dict:
        """The scores of a finished run; saves its weights and labels."""
        # Chainer's order is a set's, another in every process.
        weights = dict(sorted(npz.serialize(self.model).items()))
        files.write(self.folder / "model.npz", lambda file: np.savez_compressed(file, **weights))
        outcome = {"state": "finished", **self._scores()}
        if self.experiment.relabelling:
            labels = self._final_labels
            if self.split.noisy_labels_right is not None:
                truth = self.split.train.true_labels
                outcome["confidence"] = _confidence(labels, truth)
            outcome["labels_sha256"] = self.store.save_labels(self.experiment, labels)
        return outcome

    @property
    def _final_labels(self) -> np.ndarray:
        return chainer.get_device("@numpy").send(self.updater.labels.soft_labels)

    def _scores(self) -> dict:
        """Accuracies in [0, 1] at the best epoch and at the last; by class at the last."""
        split, log = self.split, self.log
        keys = ("epoch", "validation", "test", "recovery")
        entries = {"best": log[self.best.epoch - 1], "last": log[-1]}
        scores = {name: {k: e[k] for k in keys if k in e} for name, e in entries.items()}
        predict = extensions.Predictor(self.model)
        if "test" in self.evaluation_sets:
            images, labels = self.evaluation_sets["test"]
            predicted = predict(images)
            scores["last"]["test_by_class"] = self._by_class(predicted, labels)
        if self._recovers_by_prediction:
            images, truth = self._with_known_truth()
            predicted = predict(images)
            scores["last"]["recovery"] = accuracy(predicted, truth)
            scores["last"]["recovery_by_class"] = self._by_class(predicted, truth)
            self.best.restore()
            predicted = predict(images)
            scores["best"]["recovery"] = accuracy(predicted, truth)
        elif self.experiment.relabelling and split.noisy_labels_right is not None:
            predicted = self._final_labels.argmax(axis=1)
            by_class = self._by_class(predicted, split.train.true_labels)
            scores["last"]["recovery_by_class"] = by_class
        return scores

    def _with_known_truth(self) -> tuple[Images, np.ndarray]:
        """The training images whose true label is known, and these labels."""
        train = self.split.train
        indices = np.flatnonzero(train.true_labels >= 0)
        if len(indices) == len(train):
            return self.train_images, train.true_labels
        train = train.take(indices)
        return self._images_of(train), train.true_labels

    def _by_class(self, predicted: np.ndarray, labels: np.ndarray) -> list[float | None]:
        """The accuracy of the images of each class."""
        classes = [labels == k for k in range(self.split.num_classes)]
        return [accuracy(predicted[k], labels[k]) for k in classes]


def make_network(
    experiment: Experiment,
    split: NoisySplit,
    heads: int,
    rng: np.random.RandomState,
    weights: str | None = None,
) -> chainer.Link:
    """The untrained network of ``experiment.network``, with ``heads`` outputs per class;
    ``weights`` is the file of the pretrained weights that the description names."""
    outputs, description = heads * split.num_classes, experiment.network
    if description.weights:
        if (given := pretrained(weights).weights) != description.weights:
            raise UserError(
                f"ResNet-50 weights {weights}: {given}, expected {description.weights}, as this "
                "run is described"
            )
        assert weights is not None  # `pretrained` raises UserError where none are given
        return load_resnet50(weights, outputs, rng=rng)
    channels = 3 if split.train.on_disk else split.train.images.shape[-1]
    return PreActResNet(channels, outputs, description.units, description.widths, rng)


def _confidence(labels: np.ndarray, true_labels: np.ndarray) -> list[dict]:
    """Tables 12 and 13: number of soft labels (n, c), and of correct ones, by highest probability,
    descending; only images with a known true label count."""
    known = true_labels >= 0
    highest = labels[known].max(axis=1)
    right = labels[known].argmax(axis=1) == true_labels[known]
    rows, upper = [], np.inf
    for lower in CONFIDENCE_BOUNDS:
        inside = (highest >= lower) & (highest < upper)
        number, correct = int(inside.sum()), int(right[inside].sum())
        rows.append({"from": lower, "number": number, "right": correct})
        upper = lower
    return rows
