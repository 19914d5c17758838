"""Networks and objectives, as Chainer links."""

from chainer_jo.links.cnn_crf import CNNCRF
from chainer_jo.links.objectives import Classifier, ForwardCorrection, JointObjective, Objective
from chainer_jo.links.preact_resnet import PreActResNet

__all__ = [
    "CNNCRF",
    "Classifier",
    "ForwardCorrection",
    "JointObjective",
    "Objective",
    "PreActResNet",
]
