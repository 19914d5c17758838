"""Another source of labels: an annotator who has seen one image of each class, and labels by them.

Such errors follow the appearance of images, unlike errors drawn by a transition matrix.
"""

import numpy as np
import quick  # noqa: F401

from chainer_jo import seeds
from chainer_jo.method.label_sources import SOURCES, LabelSource
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.cell import Cell, score
from chainer_jo.reproduction.tables_and_figures.table import Block, Table


class Beginner(LabelSource):
    """Labels of the nearest, by pixels, of one random image per class."""

    short = "beginner"  # in names of runs
    noisy_validation = True  # the beginner labels all images, validation images too

    def labels(self, data, rows, noise, seed, given):
        """Labels (m,) int32 of the training images `rows` of the data set."""
        rng, true = seeds.generator(seed, "noise"), data.train.labels
        seen = [rng.choice(np.flatnonzero(true == k)) for k in range(data.num_classes)]
        pixels = data.train.images.reshape(len(true), -1).astype(np.float32)
        distances = [((pixels[rows] - pixels[i]) ** 2).sum(axis=1) for i in seen]
        return np.argmin(distances, axis=0).astype(np.int32)


SOURCES["beginner"] = Beginner()


def table(study):
    trials, given = study.comparison_trials(), dict(alpha=1.2, beta=0.8, learning_rate=0.08)
    methods = {
        name: [study.baseline(name, "beginner", 0.0, t) for t in trials]
        for name in ("cross_entropy", "forward")  # forward is told T as counted
    } | {"joint": [study.joint("beginner", 0.0, t, **given) for t in trials]}
    rows = [
        (name, [Cell({"method": name}, {"accuracy": "test"}, runs, score("last", "test"))])
        for name, runs in methods.items()
    ]
    caption = "The methods on labels of a beginner."
    return Table(number=17, caption=caption, blocks=[Block(["test (%)"], rows)])


if __name__ == "__main__":
    main(table, __doc__)
