"""Another data set: from which of scikit-learn's two photographs is a square of 8 x 8 pixels?"""

import sys

import numpy as np
import quick  # noqa: F401
from sklearn.datasets import load_sample_images

from chainer_jo.data import source
from chainer_jo.data.labelled_data import clean_data
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table


def load():
    """Some 7,000 training and 1,400 test images (8, 8, 3) of the classes china and flower."""
    parts = []
    for photograph in load_sample_images().images:  # uint8 (427, 640, 3)
        h, w, c = photograph.shape
        squares = photograph[: h // 8 * 8].reshape(h // 8, 8, w // 8, 8, c)
        parts.append(squares.swapaxes(1, 2).reshape(-1, 8, 8, c))
    images = np.concatenate(parts)
    labels = np.repeat(np.arange(2, dtype=np.int32), [len(part) for part in parts])
    test = np.arange(len(labels)) % 6 == 5
    return clean_data(
        "photographs", images[~test], labels[~test], images[test], labels[test],
        ("china", "flower"),
    )  # fmt: skip


source.DATA_SETS["photographs"] = load  # workers of `--cluster` need it in a module of its own


def table(study):
    return comparison_table(study, tables.TABLE1, "symmetric")


if __name__ == "__main__":
    main(table, __doc__, ["--data", "photographs", *sys.argv[1:]])
