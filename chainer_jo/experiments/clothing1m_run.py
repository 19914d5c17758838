"""One training run on Clothing1M, on one rank or many: `Run` for images that stay on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import chainer
import numpy as np
from chainer import training

from chainer_jo import seeds
from chainer_jo.datasets.clothing1m import Clothing1M, LabelledKeys
from chainer_jo.datasets.decoding import decode
from chainer_jo.datasets.image_stream import ImageStream
from chainer_jo.experiments.clothing1m_task import Clothing1MTask
from chainer_jo.experiments.common_extensions import extend_log, extend_training
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.objectives import make_objective
from chainer_jo.experiments.provenance import provenance
from chainer_jo.experiments.store import RunStore
from chainer_jo.functions import providers
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.preact_resnet import PreActResNet
from chainer_jo.links.resnet50_weights import load_resnet50
from chainer_jo.training import extensions
from chainer_jo.training.checkpoint import Checkpoint, shards_of
from chainer_jo.training.extensions.across_ranks import (
    EvaluationAcrossRanks,
    LabelUpdateAcrossRanks,
)
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.ranks import Ranks
from chainer_jo.training.sharding import ShardedIterator
from chainer_jo.training.streamed_images import Preparation, StreamedImages
from chainer_jo.training.updaters.sharded_updater import ShardedUpdater, SharedMomentumSGD


@dataclass(frozen=True)
class Clothing1MSettings:
    """How a run is computed, as opposed to what.

    Parameters
    ----------
    device, engine, deadline, verbose : as in `chainer_jo.experiments.run.Settings`.
    weights : file of the pretrained weights that the description names.
    workers : decoding processes of each rank; None: one per core less one.
    shards : parts that a global batch is made of; None: as many as ranks, or as the checkpoint has.
    checkpoint_steps : steps between two checkpoints within an epoch.
    """

    device: str = "cpu"
    engine: str = "auto"
    deadline: float | None = None
    verbose: bool = False
    weights: str | None = None
    workers: int | None = None
    shards: int | None = None
    checkpoint_steps: int = 2000


class Clothing1MRun:
    """A run that any number of ranks can continue, until `finish` has brought it to its end.

    Parameters
    ----------
    experiment : what to run.
    data : the data set on the first rank, None on the others.
    store : where the run is kept; the first rank holds its lock.

    Raises
    ------
    UserError
        if data, weights or labels of the first step do not fit the description.
    """

    def __init__(
        self,
        experiment: Experiment,
        data: Clothing1M | None,
        store: RunStore,
        settings: Clothing1MSettings,
        ranks: Ranks,
    ) -> None:
        self.experiment = experiment
        self.store = store
        self.settings = settings
        self.ranks = ranks
        self.folder = store.folder(experiment)
        self.device = _device(settings.device, ranks)
        self.device.use()
        self.provider = providers.choose(self.device, experiment.precision, settings.engine)
        path = self.folder / "snapshot.npz"
        shards = settings.shards or shards_of(path, ranks)
        self.task = Clothing1MTask(experiment, data, shards, ranks)
        self.stream = ImageStream(
            experiment.optimization.batch_size,
            experiment.data.resize,
            experiment.data.crop,
            settings.workers,
            on_cuda=self.device.xp is not np,
        )
        self.checkpoint = Checkpoint(
            path, self.task.shards, ranks, settings.checkpoint_steps, settings.deadline
        )
        self._build()

    def _build(self) -> None:
        experiment, task, send = self.experiment, self.task, self.device.send
        optimization, relabelling = experiment.optimization, experiment.relabelling
        step = 1 if relabelling else 2
        network, self._prepare = self._network(step)
        self.model = Classifier(network, make_objective(task))
        self.model.to_device(self.device)
        optimizer = SharedMomentumSGD(
            optimization.learning_rate,
            optimization.momentum,
            optimization.weight_decay,
            ranks=self.ranks,
            parts=len(task.shards.of_rank(self.ranks.rank)),
        ).setup(self.model)
        labels = LabelStore(
            task.labels(self.store),
            task.num_classes,
            relabelling and relabelling.rule,
            relabelling and relabelling.top,
            relabelling and relabelling.average,
            self.device.xp,
        )
        images = self._images(task.train)
        iterator = ShardedIterator(
            task.shards, optimization.batch_size, experiment.seed, step, images
        )
        self.updater = ShardedUpdater(
            iterator,
            optimizer,
            images,
            labels,
            send(task.train.labels),
            send(task.train.true_labels),
            task.shards,
            self.ranks,
            self.device,
        )
        self.trainer = training.Trainer(
            self.updater, (optimization.epochs, "epoch"), str(self.folder)
        )
        self._extend()

    def _network(self, step: int) -> tuple[chainer.Link, Preparation]:
        """The untrained network, the same on all ranks, and what its input is like."""
        experiment, classes = self.experiment, self.task.num_classes
        rng = seeds.random_state(experiment.seed, "weights", step)
        description = experiment.network
        if description.weights:
            network = load_resnet50(self.settings.weights, classes, rng=rng)
            variant = network.variant
            return network, Preparation(variant.mean, variant.std, variant.channels)
        network = PreActResNet(3, classes, description.units, description.widths, rng)
        return network, Preparation(self._mean_colour(), (255.0,) * 3)

    def _mean_colour(self) -> tuple[float, ...]:
        """Of a sample of the training images."""
        mean = None
        if self.ranks.is_first:
            size, root = self.experiment.data, self.task.root
            pixels = [decode(root / key, size.resize, size.crop) for key in self.task.sample]
            mean = tuple(np.mean(pixels, axis=(0, 1, 2)).tolist())
        return self.ranks.broadcast(mean)

    def _images(self, split: LabelledKeys) -> StreamedImages:
        return StreamedImages(self.task.root, split.keys, self.stream, self._prepare)

    def _extend(self) -> None:
        experiment, task, trainer, send = self.experiment, self.task, self.trainer, self.device.send
        optimization, relabelling = experiment.optimization, experiment.relabelling
        sets = {
            name: (self._images(split), send(split.labels))
            for name, split in (("validation", task.validation), ("test", task.test))
        }
        trainer.extend(
            EvaluationAcrossRanks(self.model, sets, optimization.batch_size, self.ranks),
            name="Evaluation",
        )
        if relabelling:
            trainer.extend(
                LabelUpdateAcrossRanks(
                    relabelling.start, relabelling.stop, send(task.train.true_labels), self.ranks
                ),
                name="LabelUpdate",
            )
        self.best = extensions.BestEpoch(self.model, keep_weights=False)
        extend_training(trainer, self.best, optimization.drops)
        if self.ranks.is_first:
            extend_log(trainer, bool(relabelling), self.settings.verbose)
        trainer.extend(self.checkpoint, name="Checkpoint", trigger=self.checkpoint.trigger)

    def finish(self) -> dict:
        """Trains from the last checkpoint, or from the start, to the end; saves the result.

        Returns
        -------
        The result, on every rank.

        Raises
        ------
        Paused
            if the deadline came first; the run can be continued.
        """
        providers.use(self.provider)
        try:
            self.checkpoint.resume(self.trainer)
            self.trainer.run(show_loop_exception_msg=False)
        except extensions.Diverged as diverged:
            result = {"state": "diverged", "epoch": diverged.epoch}
        else:
            result = {"state": "finished", **self._scores()}
        finally:
            self.stream.close()
        result = {
            "id": self.experiment.id,
            **result,
            "iterations": self.updater.iteration,
            "seconds": round(self.trainer.elapsed_time, 1),
            "ranks": self.ranks.size,
            "shards": self.task.shards.number,
            "noisy_labels_right": self.task.noisy_labels_right,
            "data": self.task.fingerprint,
            "provenance": provenance(self.device, self.provider.name if self.provider else "stock"),
        }
        self._save(result)
        return result

    def _scores(self) -> dict:
        """Accuracies in [0, 1] at the best epoch and at the last."""
        log = self.ranks.broadcast(self.store.log(self.experiment) if self.ranks.is_first else None)
        keys = ("epoch", "validation", "test", "recovery")
        return {
            name: {key: log[epoch - 1][key] for key in keys if key in log[epoch - 1]}
            for name, epoch in (("best", self.best.epoch), ("last", len(log)))
        }

    def _save(self, result: dict[str, Any]) -> None:
        labels = None
        if self.experiment.relabelling:
            labels = self.ranks.gather(
                chainer.get_device("@numpy").send(self.updater.labels.labels)
            )
        if self.ranks.is_first:
            if labels is not None:
                whole = self.task.shards.join(labels)
                result["labels_sha256"] = self.store.save_labels(self.experiment, whole)
            self.store.save_result(self.experiment, result)
            self.checkpoint.path.unlink(missing_ok=True)
        self.ranks.broadcast(None)  # nobody goes on before the files are there


def _device(name: str, ranks: Ranks) -> chainer.backend.Device:
    """Each rank's own GPU, or the CPU."""
    if name == "cpu":
        return chainer.get_device("@numpy")
    number = ranks.local_rank if ranks.size > 1 else int(name.partition(":")[2] or 0)
    return chainer.get_device(f"@cupy:{number}")
