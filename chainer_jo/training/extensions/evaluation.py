"""Accuracy on validation and test images after each epoch."""

from collections.abc import Mapping

import chainer
import numpy as np
from chainer import backend, training

from chainer_jo.links.classifier import Classifier
from chainer_jo.training.images import NetworkInput

#: Images per forward pass in test mode.
BATCH = 500


def predict(model: Classifier, images: NetworkInput) -> np.ndarray:
    """The class (n,) that the model gives to each image, in test mode, without augmentation; a
    NumPy array."""
    classes = [
        model.predict(images.plain(slice(start, start + BATCH))).argmax(axis=1)
        for start in range(0, len(images), BATCH)
    ]
    xp = backend.get_array_module(classes[0])
    return backend.CpuDevice().send(xp.concatenate(classes))


class Evaluation(training.Extension):
    """Reports, for each named set, the share of its images that the model classifies correctly.

    Parameters
    ----------
    model : what is trained.
    sets : name -> (images, labels (n,) int32).
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(
        self, model: Classifier, sets: Mapping[str, tuple[NetworkInput, np.ndarray]]
    ) -> None:
        self.model = model
        self.sets = sets

    def __call__(self, trainer: training.Trainer) -> None:
        chainer.report(
            {
                name: float((predict(self.model, images) == labels).mean())
                for name, (images, labels) in self.sets.items()
            }
        )
