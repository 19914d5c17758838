"""One training run from its description: data, links, updater, extensions, trainer, result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import chainer
import numpy as np
from chainer import training
from chainer.serializers import save_npz

from chainer_jo import files, seeds
from chainer_jo.datasets import ImageData
from chainer_jo.experiments.common_extensions import extend_log, extend_training
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.objectives import make_objective
from chainer_jo.experiments.provenance import provenance
from chainer_jo.experiments.pseudo import PseudoSource
from chainer_jo.experiments.store import RunStore
from chainer_jo.experiments.task import Task
from chainer_jo.functions import providers
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.training import extensions
from chainer_jo.training.images import NetworkInput
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.optimizers import FlatMomentumSGD
from chainer_jo.training.snapshot import snapshot
from chainer_jo.training.triggers import EpochEnd
from chainer_jo.training.updaters import JointUpdater

#: What the paper's analysis of soft labels divides them by (Tables 12 and 13): lower bounds of the
#: highest probability.
CONFIDENCE_BOUNDS = (0.99, 0.95, 0.9, 0.0)


@dataclass(frozen=True)
class Settings:
    """How a run is computed, as opposed to what: nothing here changes a result but by rounding.

    Parameters
    ----------
    device : "cpu" or "cuda" or "cuda:N".
    engine : who computes convolutions; see `chainer_jo.functions.providers.choose`.
    graph : whether steps on a GPU run as CUDA graphs, where an engine allows for it.
    deadline : value of ``time.monotonic()`` after which the run stops at the end of an epoch; None:
        never.
    snapshot_seconds : least time between two snapshots.
    pseudo : what pseudo labels are clustered from.
    verbose : whether Chainer's PrintReport and ProgressBar write to the terminal.
    """

    device: str = "cpu"
    engine: str = "auto"
    graph: bool = True
    deadline: float | None = None
    snapshot_seconds: float = 20.0
    pseudo: PseudoSource = PseudoSource()
    verbose: bool = False


class Run:
    """A run that can be continued: built from its description, then brought to its end by `finish`.

    Parameters
    ----------
    experiment : what to run.
    data : the data set that it names, whole.
    store : where it is kept; the caller holds its lock.
    on_epoch : called with the number of finished epochs at the end of each.

    Raises
    ------
    UserError
        if the data do not fit the description, or the labels of the first step are missing.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: ImageData,
        store: RunStore,
        settings: Settings,
        on_epoch: Callable[[int], None] = lambda epoch: None,
    ) -> None:
        self.experiment = experiment
        self.store = store
        self.settings = settings
        self.folder = store.open(experiment)
        self.task = Task(
            experiment,
            data,
            lambda: (
                settings.pseudo.labels(
                    data, experiment.noise.features, experiment.seed, store.root
                ).labels
            ),
        )
        self.device = chainer.get_device(
            "@numpy"
            if settings.device == "cpu"
            else f"@cupy:{settings.device.partition(':')[2] or 0}"
        )
        self.device.use()
        self.provider = providers.choose(self.device, experiment.precision, settings.engine)
        # Stock Chainer's convolutions are cuBLAS's, which CuPy does not capture.
        on_gpu = self.device.xp is not np
        self.graph = settings.graph and on_gpu and self.provider is not None
        self._on_epoch = on_epoch
        self._build()

    def _build(self) -> None:
        experiment, task, send = self.experiment, self.task, self.device.send
        optimization = experiment.optimization
        step = 1 if experiment.relabelling else 2
        objective = make_objective(task)
        network = PreActResNet(
            task.train.shape[-1],
            objective.heads * task.num_classes,
            experiment.network.units,
            experiment.network.widths,
            seeds.random_state(experiment.seed, "weights", step),
        )
        self.model = Classifier(network, objective)
        self.model.to_device(self.device)
        optimizer = FlatMomentumSGD(
            optimization.learning_rate, optimization.momentum, optimization.weight_decay
        ).setup(self.model)
        relabelling = experiment.relabelling
        labels = LabelStore(
            task.labels(self.store),
            task.num_classes,
            relabelling and relabelling.rule,
            relabelling and relabelling.top,
            relabelling and relabelling.average,
            self.device.xp,
        )
        self.train_images = NetworkInput(send(task.train), send(task.mean), optimization.pad)
        iterator = BatchIterator(
            len(task.train),
            optimization.batch_size,
            experiment.seed,
            step,
            optimization.pad,
            optimization.flip,
            send,
        )
        self.updater = JointUpdater(
            iterator,
            optimizer,
            self.train_images,
            labels,
            send(task.noisy_labels),
            send(task.true_labels),
            self.device,
            self.graph,
        )
        self.trainer = training.Trainer(self.updater, (optimization.epochs, "epoch"), self.folder)
        self._extend()

    def _extend(self) -> None:
        experiment, task, trainer, send = self.experiment, self.task, self.trainer, self.device.send
        relabelling, optimization = experiment.relabelling, experiment.optimization
        trainer.extend(
            extensions.Evaluation(
                self.model,
                {
                    name: (NetworkInput(send(images), self.train_images.mean), labels)
                    for name, images, labels in task.evaluation_sets
                },
                self.graph,
            ),
            name="Evaluation",
        )
        if relabelling:
            trainer.extend(
                extensions.LabelUpdate(relabelling.start, relabelling.stop, send(task.true_labels)),
                name="LabelUpdate",
            )
        self.best = extensions.BestEpoch(self.model, keep_weights=self._recovers_by_prediction)
        extend_training(trainer, self.best, optimization.drops)
        extend_log(trainer, bool(relabelling), self.settings.verbose)
        trainer.extend(
            lambda trainer: self._on_epoch(trainer.updater.epoch),
            name="on_epoch",
            trigger=(1, "epoch"),
            priority=0,
        )
        save = snapshot()
        trainer.extend(save, name="snapshot", trigger=EpochEnd(self.settings.snapshot_seconds))
        if self.settings.deadline is not None:
            trainer.extend(extensions.Pause(self.settings.deadline, save), name="Pause")

    @property
    def _recovers_by_prediction(self) -> bool:
        """Whether recovery means predictions on the training images; the method's own means its
        labels."""
        return not (self.experiment.relabelling or self.experiment.first_step)

    def finish(self) -> dict:
        """Trains from the latest snapshot, or from the start, to the end, and saves and returns the
        result.

        Raises
        ------
        Paused
            if the deadline came first; the run can be continued.
        """
        providers.use(self.provider)
        try:
            self.trainer.run(show_loop_exception_msg=False)
        except extensions.Diverged as diverged:
            result = {"state": "diverged", "epoch": diverged.epoch}
        else:
            files.write(self.folder / "model.npz", lambda file: save_npz(file, self.model))
            result = {"state": "finished", **self._scores()}
            if self.experiment.relabelling:
                labels = chainer.get_device("@numpy").send(self.updater.labels.labels)
                result["confidence"] = self._confidence(labels)
                result["labels_sha256"] = self.store.save_labels(self.experiment, labels)
        result = {
            "id": self.experiment.id,
            **result,
            "iterations": self.updater.iteration,
            "seconds": round(self.trainer.elapsed_time, 1),
            "noisy_labels_right": self._noisy_right,
            "data": self.task.fingerprint,
            "provenance": provenance(self.device, self.provider.name if self.provider else "stock"),
        }
        self.store.save_result(self.experiment, result)
        self.store.tidy(self.experiment)
        return result

    @property
    def _noisy_right(self) -> float:
        return float((self.task.noisy_labels == self.task.true_labels).mean())

    def _scores(self) -> dict:
        """Accuracies in [0, 1] at the best epoch and at the last; by class at the last."""
        log = self.store.log(self.experiment)
        scores = {}
        for name, epoch in (("best", self.best.epoch), ("last", len(log))):
            entry = log[epoch - 1]
            scores[name] = {
                key: entry[key]
                for key in ("epoch", "validation", "test", "recovery")
                if key in entry
            }
        _, test, labels = self.task.evaluation_sets[1]
        predicted = extensions.predict(
            self.model, NetworkInput(self.device.send(test), self.train_images.mean)
        )
        scores["last"]["test_by_class"] = self._by_class(predicted, labels)
        if self._recovers_by_prediction:
            for name in ("last", "best"):
                if name == "best":
                    self.best.restore()
                predicted = extensions.predict(self.model, self.train_images)
                by_class = self._by_class(predicted, self.task.true_labels)
                scores[name]["recovery"] = float((predicted == self.task.true_labels).mean())
                if name == "last":
                    scores[name]["recovery_by_class"] = by_class
        elif self.experiment.relabelling:
            assigned = chainer.get_device("@numpy").send(self.updater.labels.labels).argmax(axis=1)
            scores["last"]["recovery_by_class"] = self._by_class(assigned, self.task.true_labels)
        return scores

    def _by_class(self, predicted: np.ndarray, labels: np.ndarray) -> list[float]:
        return [float((predicted[labels == k] == k).mean()) for k in range(self.task.num_classes)]

    def _confidence(self, labels: np.ndarray) -> list[dict]:
        """Tables 12 and 13: number and accuracy of labels by their highest probability, highest
        first."""
        highest, right = labels.max(axis=1), labels.argmax(axis=1) == self.task.true_labels
        rows, upper = [], np.inf
        for lower in CONFIDENCE_BOUNDS:
            inside = (highest >= lower) & (highest < upper)
            rows.append(
                {"from": lower, "number": int(inside.sum()), "right": int(right[inside].sum())}
            )
            upper = lower
        return rows
