"""Networks and objectives, as Chainer links."""

from chainer_jo.links.classifier import Classifier
from chainer_jo.links.cnn_crf import CNNCRF
from chainer_jo.links.forward_correction import ForwardCorrection
from chainer_jo.links.joint_objective import JointObjective
from chainer_jo.links.objective import Objective
from chainer_jo.links.preact_resnet import PreActResNet

__all__ = [
    "CNNCRF",
    "Classifier",
    "ForwardCorrection",
    "JointObjective",
    "Objective",
    "PreActResNet",
]
