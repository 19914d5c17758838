"""The objective link that a description asks for."""

from chainer_jo.experiments.task import Task
from chainer_jo.links import CNNCRF, ForwardCorrection, JointObjective
from chainer_jo.links.objective import Objective


def make_objective(task: Task) -> Objective:
    """The link of ``task.experiment.objective``; cross entropy is the joint one with alpha = beta =
    0."""
    experiment = task.experiment
    if experiment.objective == "forward":
        return ForwardCorrection(task.transition_matrix)
    if experiment.objective == "cnn_crf":
        return CNNCRF(task.transition_matrix, task.prior, experiment.optimization.epochs)
    return JointObjective(task.prior, experiment.alpha, experiment.beta)
