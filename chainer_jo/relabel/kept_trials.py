"""What small trainings with each settings have come to, kept in files: a command that was killed
goes on with the next settings.

A `Run` keeps a description, a log and a checkpoint of every few seconds, as it may take days. The
trainings on feature vectors take seconds in all, less than a process takes to start: there the
result of all folds is what is kept.
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
from chainer_jo.relabel.training import Settings


class KeptTrials:
    """The probabilities of all images by each settings, below a folder.

    Parameters
    ----------
    data : what tells the data, and how they are divided, from others.
    before : called before any are computed; may raise.
    """

    def __init__(self, folder: Path, data: str, before: Callable[[], None]) -> None:
        self._folder = folder
        self._data = data
        self._before = before

    def once(self, settings: Settings, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """What ``compute`` gives, or gave before."""
        about = json.dumps([self._data, dataclasses.asdict(settings)])
        path = self._folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.npy"
        with contextlib.suppress(*files.NOT_AN_NPZ):  # not there, or damaged
            return np.load(path, allow_pickle=False)
        self._before()
        probabilities = compute()
        files.write(path, lambda file: np.save(file, probabilities))
        return probabilities
