"""Trainer extensions: label update, evaluation, best epoch, log, checkpoint, stop on divergence."""

from chainer_jo.method.extensions.checkpoint import Checkpoint, Paused
from chainer_jo.method.extensions.epoch_end import (
    BestEpoch,
    Diverged,
    LabelUpdate,
    LogReport,
    StopWhenDiverged,
)
from chainer_jo.method.extensions.evaluation import Evaluation, Predictor

__all__ = [
    "BestEpoch",
    "Checkpoint",
    "Diverged",
    "Evaluation",
    "LabelUpdate",
    "LogReport",
    "Paused",
    "Predictor",
    "StopWhenDiverged",
]
