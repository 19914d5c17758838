"""The state of a job on many ranks in one file, from which any number of ranks can go on."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from chainer import serializers, training

from chainer_jo.errors import UserError
from chainer_jo.training.extensions.pause import Paused
from chainer_jo.training.ranks import Ranks
from chainer_jo.training.sharding import Shards
from chainer_jo.training.snapshot import DurableWriter

#: What each rank has of its own images; everything else is the same on all ranks.
_OF_IMAGES = "updater/labels/"
_SHARDS = "updater/iterator:main/shards"


class Checkpoint(training.Extension):
    """Saves the trainer, whole: the labels of all ranks are put together in the images' order.

    The file is replaced at the end of every epoch and after every `interval` steps; the steps, not
    a clock, decide, so that all ranks agree.

    Parameters
    ----------
    path : written by the first rank alone.
    interval : steps between two checkpoints within an epoch.
    deadline : value of `time.monotonic()` after which training ends, once saved, with `Paused`.
    """

    # Last: the log has been written, and the file must hold all that happened in this step.
    priority = -200

    def __init__(
        self,
        path: Path,
        shards: Shards,
        ranks: Ranks,
        interval: int,
        deadline: float | None = None,
    ) -> None:
        self.path = path
        self.shards = shards
        self.ranks = ranks
        self.interval = interval
        self.deadline = deadline

    def trigger(self, trainer: training.Trainer) -> bool:
        updater = trainer.updater
        return updater.is_new_epoch or updater.iteration % self.interval == 0

    def __call__(self, trainer: training.Trainer) -> None:
        serializer = serializers.DictionarySerializer()
        serializer.save(trainer)
        state = serializer.target
        for name in filter(_is_of_images, sorted(state)):
            parts = self.ranks.gather(state[name])
            if parts and state[name].ndim:
                state[name] = self.shards.join(parts)
        if self.ranks.is_first:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            DurableWriter()(self.path.name, str(self.path.parent), state)
        if self.deadline is not None and self.ranks.broadcast(time.monotonic() >= self.deadline):
            raise Paused

    def resume(self, trainer: training.Trainer) -> None:
        """Loads what `__call__` saved, if it did; called by all ranks together.

        Raises
        ------
        UserError
            if the file is damaged, or of a data set of another size.
        """
        state = _read(self.path) if self.ranks.is_first and self.path.exists() else None
        split = {}
        if state is not None:
            for name in filter(_is_of_images, sorted(state)):
                if state[name].ndim:
                    if len(state[name]) != self.shards.images:
                        raise UserError(
                            f"{self.path}: labels of {len(state[name])} images, the data set has "
                            f"{self.shards.images}; expected the same data, or --fresh"
                        )
                    split[name] = self.shards.split(state[name])
            state = {name: array for name, array in state.items() if name not in split}
        state = self.ranks.broadcast(state)
        if state is None:
            return
        for name in self.ranks.broadcast(sorted(split)):
            state[name] = self.ranks.scatter(split.get(name))
        serializers.NpzDeserializer(state).load(trainer)


def shards_of(path: Path, ranks: Ranks) -> int:
    """How many shards to train with: the checkpoint's if the ranks divide them, or one a rank."""
    saved = None
    if ranks.is_first and path.exists():
        saved = int(_read(path, only=_SHARDS)[_SHARDS])
    saved = ranks.broadcast(saved)
    return saved if saved and saved % ranks.size == 0 else ranks.size


def _is_of_images(name: str) -> bool:
    return name.startswith(_OF_IMAGES)


def _read(path: Path, only: str | None = None) -> dict[str, np.ndarray]:
    try:
        # As Chainer's own snapshots do, these hold None where a trigger has no state yet.
        with np.load(path, allow_pickle=True) as archive:
            return {name: archive[name] for name in ([only] if only else archive.files)}
    except Exception as error:  # a damaged archive can raise anything
        raise UserError(f"{path}: damaged checkpoint ({error}); --fresh begins anew") from None
