"""Chainer updaters of the method."""

from chainer_jo.training.updaters.joint_updater import JointUpdater

__all__ = ["JointUpdater"]
