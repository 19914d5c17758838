"""Classification accuracy on held-out sets."""

from collections.abc import Mapping

import chainer
import numpy as np
from chainer import backend, training
from chainer.backends import cuda

from chainer_jo.engine.cuda.graph_step import GraphStep
from chainer_jo.method.accuracy import accuracy
from chainer_jo.method.images import Images
from chainer_jo.method.objectives import Classifier


class Predictor:
    """Predicted classes of images, in test mode and without augmentation.

    Parameters
    ----------
    model : network to evaluate.
    graph : True to replay the forward pass as a CUDA graph.
    """

    def __init__(self, model: Classifier, graph: bool = False) -> None:
        self._model = model
        self._graph = GraphStep(self._classify, cuda.cupy) if graph else None

    def __call__(self, images: Images) -> np.ndarray:
        """Predicted classes (n,), a NumPy array."""
        classes = [self._classes(x) for x in images.in_order()]
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


class Evaluation(training.Extension):
    """Reports the accuracy on each named set after every epoch.

    Parameters
    ----------
    model : model in training.
    sets : name -> (images, labels (n,) int32, a NumPy array).
    graph : as in `Predictor`.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER + 1  # before the label update, in the log's order of keys

    def __init__(
        self, model: Classifier, sets: Mapping[str, tuple[Images, np.ndarray]], graph: bool = False
    ) -> None:
        self.model = model
        self.sets = sets
        self._predict = Predictor(model, graph)

    def __call__(self, trainer: training.Trainer) -> None:
        for name, (images, labels) in self.sets.items():
            chainer.report({name: accuracy(self._predict(images), labels)})
