"""Accuracy on validation and test images after each epoch."""

from collections.abc import Mapping

import chainer
import numpy as np
from chainer import backend, training
from chainer.backends import cuda

from chainer_jo.links.classifier import Classifier
from chainer_jo.training.device import GraphStep
from chainer_jo.training.images import NetworkInput

#: Images per forward pass in test mode.
BATCH = 500


class Predictor:
    """Calls a model on images in test mode, without augmentation.

    Parameters
    ----------
    model : called in batches.
    graph : whether as a CUDA graph.
    """

    def __init__(self, model: Classifier, graph: bool = False) -> None:
        self._model = model
        self._graph = GraphStep(self._classify, cuda.cupy) if graph else None

    def __call__(self, images: NetworkInput) -> np.ndarray:
        """The class (n,) of each image; a NumPy array."""
        parts = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)]
        if self._graph is None:
            classes = [self._model.predict(images.plain(part)).argmax(axis=1) for part in parts]
        else:
            classes = []
            for part in parts:
                pixels = images.images[part]
                unknown = cuda.cupy.zeros(len(pixels), np.int64)
                classes.append(self._graph(pixels, images.mean, unknown)[-1].copy())
        xp = backend.get_array_module(classes[0])
        return backend.CpuDevice().send(xp.concatenate(classes))

    def _classify(self, pixels, mean, classes) -> None:
        x = NetworkInput(pixels, mean).plain(slice(None))
        classes[...] = self._model.predict(x).argmax(axis=1)


def predict(model: Classifier, images: NetworkInput) -> np.ndarray:
    """The class (n,) that the model gives to each image, as `Predictor` says, once."""
    return Predictor(model)(images)


class Evaluation(training.Extension):
    """Reports, for each named set, the share of its images that the model classifies correctly.

    Parameters
    ----------
    model : what is trained.
    sets : name -> (images, labels (n,) int32, a NumPy array).
    graph : whether the model is called as a CUDA graph.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(
        self,
        model: Classifier,
        sets: Mapping[str, tuple[NetworkInput, np.ndarray]],
        graph: bool = False,
    ) -> None:
        self.sets = sets
        self._predict = Predictor(model, graph)

    def __call__(self, trainer: training.Trainer) -> None:
        chainer.report(
            {
                name: float((self._predict(images) == labels).mean())
                for name, (images, labels) in self.sets.items()
            }
        )
