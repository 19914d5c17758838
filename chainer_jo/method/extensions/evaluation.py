"""What a model says of images, and how often it is right: after each epoch, and of a run that has
ended."""

from collections.abc import Mapping
from typing import Any

import chainer
import numpy as np
from chainer import backend, training
from chainer.backends import cuda

from chainer_jo.engine.cuda.graph_step import GraphStep
from chainer_jo.method.images import Images
from chainer_jo.method.objectives import Classifier


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

    def __call__(self, images: Images) -> np.ndarray:
        """The class (n,) of each image; a NumPy array."""
        classes = [self._classes(x) for x in images.in_order()]
        if not classes:
            return np.empty(0, np.int64)
        xp = backend.get_array_module(classes[0])
        return backend.CpuDevice().send(xp.concatenate(classes))

    def _classes(self, x):
        if self._graph is None:
            return self._model.predict(x).argmax(axis=1)
        # The graph's own arrays are plain ones: this way the channels stay last in memory.
        x = cuda.cupy.moveaxis(x, 1, -1)
        return self._graph(x, cuda.cupy.zeros(len(x), np.int64))[-1].copy()

    def _classify(self, x, classes) -> None:
        classes[...] = self._model.predict(cuda.cupy.moveaxis(x, -1, 1)).argmax(axis=1)


def accuracy(predicted: Any, labels: Any) -> float | None:
    """The share of right predictions (n,) among those whose label is known (not negative), if any
    is; arrays of one device."""
    is_known = labels >= 0
    is_right = (predicted == labels) & is_known
    known = int(is_known.sum())
    return int(is_right.sum()) / known if known else None


class Evaluation(training.Extension):
    """Reports, for each named set, the share of its images that the model classifies correctly.

    Parameters
    ----------
    model : what is trained.
    sets : name -> (images, their labels (n,) int32, a NumPy array).
    graph : whether the model is called as a CUDA graph.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(
        self,
        model: Classifier,
        sets: Mapping[str, tuple[Images, np.ndarray]],
        graph: bool = False,
    ) -> None:
        self.model = model
        self.sets = sets
        self._predict = Predictor(model, graph)

    def __call__(self, trainer: training.Trainer) -> None:
        chainer.report(
            {
                name: accuracy(self._predict(images), labels)
                for name, (images, labels) in self.sets.items()
            }
        )
