"""Trainer extensions: label averaging, evaluation, best/last bookkeeping, saving and stopping."""

from chainer_jo.training.extensions.best import BestEpoch
from chainer_jo.training.extensions.checkpoint import Checkpoint, Paused
from chainer_jo.training.extensions.diverged import Diverged, StopWhenDiverged
from chainer_jo.training.extensions.evaluation import Evaluation, predict
from chainer_jo.training.extensions.label_update import LabelUpdate
from chainer_jo.training.extensions.log_report import LogReport, extend_log

__all__ = [
    "BestEpoch",
    "Checkpoint",
    "Diverged",
    "Evaluation",
    "LabelUpdate",
    "LogReport",
    "Paused",
    "StopWhenDiverged",
    "extend_log",
    "predict",
]
