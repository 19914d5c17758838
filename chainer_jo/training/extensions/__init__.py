"""Trainer extensions: label averaging, evaluation, best/last bookkeeping, and when to stop."""

from chainer_jo.training.extensions.best import BestEpoch
from chainer_jo.training.extensions.diverged import Diverged, StopWhenDiverged
from chainer_jo.training.extensions.evaluation import Evaluation, predict
from chainer_jo.training.extensions.label_update import LabelUpdate
from chainer_jo.training.extensions.log_report import LogReport
from chainer_jo.training.extensions.pause import Pause, Paused

__all__ = [
    "BestEpoch",
    "Diverged",
    "Evaluation",
    "LabelUpdate",
    "LogReport",
    "Pause",
    "Paused",
    "StopWhenDiverged",
    "predict",
]
