"""The state of a run in one file, from which it goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from chainer import serializers, training

from chainer_jo import files
from chainer_jo.errors import UserError

_LR = "updater/optimizer:main/lr"
_DATA = "data"
_CODES = "codes"
#: Not every command has a flag that forgets what there is.
_REMOVED = "this file removed, which begins the run anew"


class Paused(Exception):
    """The run stopped before its end and can be continued."""


class Checkpoint(training.Extension):
    """Saves the trainer, whole.

    The file is replaced at the end of an epoch, or within a long one after every `steps` steps, if
    `seconds` have gone by since the last time or the deadline has come. The trainer goes on from it
    by itself.

    Parameters
    ----------
    path : the file.
    data : fingerprint of what is trained on.
    computing : what computes, as JSON values.
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
        seconds: float,
        steps: int,
        deadline: float | None,
    ) -> None:
        self.path = path
        self.data = data
        self.computed = [computing]
        self.seconds = seconds
        self.steps = steps
        self.deadline = deadline
        self._last = time.monotonic()

    # Chainer takes a function for the interval that its hint asks for.
    def trigger(self, trainer: training.Trainer) -> bool:  # type: ignore[override]
        return trainer.updater.steps_of_epoch % self.steps == 0

    def __call__(self, trainer: training.Trainer) -> None:
        now = time.monotonic()
        over = self.deadline is not None and now >= self.deadline
        if over or now - self._last >= self.seconds:
            self._save(trainer)
            self._last = now
        if over:
            raise Paused

    def _save(self, trainer: training.Trainer) -> None:
        state = serializers.npz.serialize(trainer)
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
        if not self.path.exists():
            return
        state = _read(self.path)
        found = str(state.get(_DATA))
        if found != self.data:
            raise UserError(
                f"{self.path}: checkpoint of data with fingerprint {found}, these have "
                f"{self.data}; expected the same data and labels, or {_REMOVED}"
            )
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


def _read(path: Path) -> dict[str, np.ndarray]:
    with files.expected(path, _REMOVED), files.open_npz(path) as archive:
        return {name: archive[name] for name in archive.files}
