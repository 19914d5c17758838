"""The state of a run in one file, from which any number of ranks can go on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from chainer import serializers, training

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.training.many_ranks import Ranks, Shards

#: Arrays with one row for each image of a rank. Everything else is the same on all ranks.
_OF_IMAGES = "updater/labels/"
_SHARDS = "updater/iterator:main/shards"
_LR = "updater/optimizer:main/lr"
_DATA = "data"
_CODES = "codes"
#: Not every command has a flag that forgets what there is.
_REMOVED = "this file removed, which begins the run anew"


class Paused(Exception):
    """The run stopped before its end and can be continued."""


class Checkpoint(training.Extension):
    """Saves the trainer, whole: the labels of all ranks are put together in the images' order.

    The file is replaced at the end of an epoch, or within a long one after every `steps` steps, if
    `seconds` have gone by since the last time or the deadline has come: the first rank's clock
    decides for all. The trainer goes on from it by itself.

    Parameters
    ----------
    path : written by the first rank alone.
    data : fingerprint of what is trained on.
    computing : what computes, as JSON values.
    shards : how the images are divided; their ranks call this together.
    seconds : least time between two checkpoints.
    steps : between two moments within an epoch at which there may be one.
    deadline : value of `time.monotonic()` after which training ends, saved, with `Paused`; None:
        never.

    Attributes
    ----------
    computed : all that have computed what the trainer holds, this one last.
    """

    # Last: the log has been written, and the file must hold all that happened in this step. For the
    # same reason what is loaded comes after all that other extensions begin with.
    priority = -200

    def __init__(
        self,
        path: Path,
        data: str,
        computing: dict,
        shards: Shards,
        ranks: Ranks,
        seconds: float,
        steps: int,
        deadline: float | None,
    ) -> None:
        self.path = path
        self.data = data
        self.computed = [computing]
        self.shards = shards
        self.ranks = ranks
        self.seconds = seconds
        self.steps = steps
        self.deadline = deadline
        self._last = time.monotonic()

    def trigger(self, trainer: training.Trainer) -> bool:
        return trainer.updater.steps_of_epoch % self.steps == 0

    def __call__(self, trainer: training.Trainer) -> None:
        now = time.monotonic()
        over = self.deadline is not None and now >= self.deadline
        due, over = self.ranks.broadcast((over or now - self._last >= self.seconds, over))
        if due:
            self._save(trainer)
            self._last = now
        if over:
            raise Paused

    def _save(self, trainer: training.Trainer) -> None:
        state = serializers.npz.serialize(trainer)
        for name in filter(_is_of_images, sorted(state)):
            parts = self.ranks.gather(state[name])
            if parts and state[name].ndim:
                state[name] = self.shards.join(parts)
        if self.ranks.is_first:
            state[_LR] = np.asarray(trainer.updater.get_optimizer("main").lr)
            state[_DATA] = np.asarray(self.data)
            state[_CODES] = np.asarray(json.dumps(self.computed))
            files.write(self.path, lambda file: serializers.save_npz(file, state, False))

    def initialize(self, trainer: training.Trainer) -> None:
        """Loads what was saved, if anything was.

        Raises
        ------
        UserError
            if the file is damaged, is of other data, or lacks a part of the state.
        """
        state = _read(self.path) if self.ranks.is_first and self.path.exists() else None
        split = {}
        if state is not None:
            found = str(state.pop(_DATA, None))
            if found != self.data:
                raise UserError(
                    f"{self.path}: checkpoint of data with fingerprint {found}, these have "
                    f"{self.data}; expected the same data and labels, or {_REMOVED}"
                )
            for name in filter(_is_of_images, sorted(state)):
                if state[name].ndim:
                    split[name] = self.shards.split(state.pop(name))
        state = self.ranks.broadcast(state)
        if state is None:
            return
        for name in self.ranks.broadcast(sorted(split)):
            state[name] = self.ranks.scatter(split.get(name))
        try:
            before = json.loads(str(state[_CODES]))
            serializers.NpzDeserializer(state).load(trainer)
            # What shifts it has begun with the first one, before this was loaded.
            trainer.updater.get_optimizer("main").lr = float(state[_LR])
        except KeyError as error:
            raise UserError(
                f"{self.path}: checkpoint without {error}, as of another version of this package; "
                f"expected {_REMOVED}"
            ) from None
        self.computed = [each for each in before if each not in self.computed] + self.computed


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
        raise UserError(f"{path}: damaged checkpoint ({error}); expected {_REMOVED}") from None
