"""What folds of small trainings have come to, kept in files: a command that was killed goes on with
the next fold.

A `Run` keeps a description, a log and a checkpoint of every few seconds, as it may take days. The
trainings on feature vectors take seconds in all, less than a process takes to start: there the
result of a whole fold is what is kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from chainer_jo import files
from chainer_jo.experiments.relabelling import Settings


class KeptFolds:
    """The probabilities of each fold's images, below a folder.

    Parameters
    ----------
    data : what tells the data, and how they are divided, from others.
    before : called before a fold is computed; may raise.
    """

    def __init__(self, folder: Path, data: str, before: Callable[[], None]) -> None:
        self._folder = folder
        self._data = data
        self._before = before

    def once(self, settings: Settings, fold: int, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """What ``compute`` gives, or gave before."""
        about = json.dumps([self._data, dataclasses.asdict(settings), fold])
        path = self._folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.npy"
        with contextlib.suppress(*files.NOT_AN_NPZ):  # not there, or damaged
            return np.load(path, allow_pickle=False)
        self._before()
        probabilities = compute()
        files.write(path, lambda file: np.save(file, probabilities))
        return probabilities
