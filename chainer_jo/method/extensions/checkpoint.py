"""Checkpoint: the state of a run in one file, from which it resumes."""

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
_NETWORK = "updater/model:main/predictor/"
#: Remedy in messages: not every command has a flag that starts over.
_REMOVE = "remove this file, the run then starts again"


class Paused(Exception):
    """Training stopped before its end, and can resume."""


class Checkpoint(training.Extension):
    """Saves the whole trainer, and resumes from the file if it exists.

    At the end of an epoch, and after every `steps` steps within an epoch, the file is replaced if
    `seconds` have passed since the last time, or at the deadline.

    Parameters
    ----------
    path : checkpoint file.
    data : identity of the run and of its training data.
    computing : provenance of this process, as JSON values.
    seconds : minimum time between two checkpoints.
    steps : interval within an epoch.
    deadline : value of `time.monotonic()` at which training ends with `Paused`, saved; or None.

    Attributes
    ----------
    computed : provenance of every process that contributed, newest last.
    """

    # Last: the file must hold everything that happened in this step, and loading must come after
    # the other extensions' initialisation.
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
        """Loads the file, if there is one. Raises UserError if it is damaged, is of other data, or
        lacks a part of the state."""
        if not self.path.exists():
            return
        with files.expected(self.path, f"it as written; {_REMOVE}"):
            state = files.arrays(self.path)
        trained_on = str(state.get(_DATA))
        if trained_on != self.data:
            raise UserError(
                f"{self.path}: checkpoint of {trained_on!r}, this run is {self.data!r}; expected "
                f"the same run, data and labels; {_REMOVE}"
            )
        with files.expected(self.path, f"it as written; {_REMOVE}"):
            try:
                earlier = [dict(code) for code in json.loads(str(state[_CODES]))]
                network = trainer.updater.get_optimizer("main").target.predictor
                weights = serializers.npz.serialize(network)
                files.check_arrays({name: state[_NETWORK + name] for name in weights}, weights)
                serializers.NpzDeserializer(state).load(trainer)
                # The schedule has set the first epoch's learning rate before this.
                trainer.updater.get_optimizer("main").lr = float(state[_LR])
            except KeyError as error:
                raise ValueError(f"without {error}, as of another version") from None
        self.computed = [code for code in earlier if code not in self.computed] + self.computed
