"""What a run on Clothing1M trains and evaluates on: each rank's part of the keys and labels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from chainer_jo.datasets.clothing1m import Clothing1M, LabelledKeys
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.training.ranks import Ranks
from chainer_jo.training.sharding import Shards


class Clothing1MTask:
    """A rank's part of the data set; the first rank reads, the others are sent what is theirs.

    Parameters
    ----------
    data : the whole set on the first rank, None on the others.
    shard_count : how many shards the training images are divided into.

    Attributes
    ----------
    root : the folder that keys are below.
    train, validation, test : this rank's `LabelledKeys`.
    shards : how the training images are divided.
    prior : float32 (c,), the distribution of all noisy labels (section 5.6).
    noisy_labels_right : share of right ones among those whose true label is known, or None.
    fingerprint : digest of all keys and labels.
    sample : on the first rank the first training images, whichever rank's they are; None elsewhere.
    """

    SAMPLE = 500

    def __init__(
        self, experiment: Experiment, data: Clothing1M | None, shard_count: int, ranks: Ranks
    ) -> None:
        self.experiment = experiment
        self._ranks = ranks
        self.sample = data and data.train.keys[: self.SAMPLE]
        common = _describe(data) if ranks.is_first else None
        self.root, self.class_names, images, self.prior, right, self.fingerprint = ranks.broadcast(
            common
        )
        self.num_classes = len(self.class_names)
        self.noisy_labels_right = right
        self.shards = Shards(images, shard_count, ranks.rank, ranks.size)
        self.train = self._share(data and data.train, self.shards.indices)
        self.validation = self._share(data and data.validation)
        self.test = self._share(data and data.test)

    def _share(self, split: LabelledKeys | None, indices=None) -> LabelledKeys:
        """This rank's part of a split: the images of its shards, or of one round in turn."""
        parts = None
        if self._ranks.is_first:
            turns = np.arange(len(split))
            indices = indices or (lambda rank: turns[rank :: self._ranks.size])
            parts = [split.take(indices(rank)) for rank in range(self._ranks.size)]
        return self._ranks.scatter(parts)

    def labels(self, store: RunStore) -> np.ndarray:
        """What this rank trains on: its noisy labels (n,), or its part of the first step's (n, c).

        Raises
        ------
        UserError
            if the first step's labels are not there, or are of another number of images.
        """
        first_step = self.experiment.first_step
        if first_step is None:
            return self.train.labels
        whole = store.labels(first_step) if self._ranks.is_first else None
        if self._ranks.is_first and (whole is None or len(whole) != self.shards.images):
            found = "not there" if whole is None else f"of {len(whole)} images"
            raise UserError(
                f"labels of {first_step.id}: {found}, expected those of {self.shards.images} "
                "images; the first step has to run first, on the same data"
            )
        return self._ranks.scatter(None if whole is None else self.shards.split(whole))


def _describe(data: Clothing1M) -> tuple[Path, tuple[str, ...], int, np.ndarray, float | None, str]:
    train = data.train
    frequencies = np.bincount(train.labels, minlength=len(data.class_names))
    if not frequencies.all():
        missing = data.class_names[int(frequencies.argmin())]
        raise UserError(
            f"Clothing1M folder {str(data.root)!r}: no training image is labelled {missing!r}, "
            "expected some of every class: the prior is the distribution of the labels"
        )
    known = train.true_labels >= 0
    right = float((train.labels == train.true_labels)[known].mean()) if known.any() else None
    digest = hashlib.sha256()
    for split in (train, data.validation, data.test):
        split.keys.digest_into(digest)
        digest.update(split.labels)
    prior = (frequencies / frequencies.sum()).astype(np.float32)
    return data.root, data.class_names, len(train), prior, right, digest.hexdigest()[:16]
