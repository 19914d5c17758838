"""Evaluation and label update for a training set that is spread over several ranks."""

from __future__ import annotations

from collections.abc import Mapping

import chainer
from chainer import training

from chainer_jo.links.classifier import Classifier
from chainer_jo.training.extensions.label_update import LabelUpdate
from chainer_jo.training.ranks import Ranks, counts
from chainer_jo.training.streamed_images import StreamedImages


class EvaluationAcrossRanks(training.Extension):
    """Reports, for each named set, the share of its images that the model classifies correctly.

    The running averages of batch normalisation are averaged over the ranks first, so that all
    evaluate, and save, the same network; then every rank classifies its part of each set.

    Parameters
    ----------
    model : what is trained.
    sets : name -> (this rank's images, their labels (n,) int32).
    batch_size : images per forward pass.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(
        self,
        model: Classifier,
        sets: Mapping[str, tuple[StreamedImages, object]],
        batch_size: int,
        ranks: Ranks,
    ) -> None:
        self.model = model
        self.sets = sets
        self.batch_size = batch_size
        self.ranks = ranks

    def __call__(self, trainer: training.Trainer) -> None:
        self.ranks.average_statistics(self.model)
        chainer.report({name: self._accuracy(*part) for name, part in self.sets.items()})

    def _accuracy(self, images: StreamedImages, labels) -> float:
        found = sum(
            counts(self.model.predict(x).argmax(axis=1), labels[part])
            for part, x in images.in_order(self.batch_size)
        )
        right, known = self.ranks.sum(found)
        return float(right / known)


class LabelUpdateAcrossRanks(LabelUpdate):
    """`LabelUpdate`; the reported ``recovery`` is that of all ranks, over the known true labels."""

    def __init__(self, start: int, stop: int, true_labels, ranks: Ranks) -> None:
        super().__init__(start, stop, true_labels)
        self.ranks = ranks

    def report(self, labels) -> None:
        right, known = self.ranks.sum(counts(labels.argmax(axis=1), self.true_labels))
        if known:
            chainer.report({"recovery": float(right / known)})
