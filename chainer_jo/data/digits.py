"""Handwritten digits from scikit-learn: no download and no files needed."""

from __future__ import annotations

import numpy as np

from chainer_jo.data.array_cache import decoded_once
from chainer_jo.data.labelled_data import LabelledData, clean_data
from chainer_jo.errors import UserError

NAME = "digits"
_LEVELS = 16  # the originals are ink counts 0..16


def load() -> LabelledData:
    """1,498 training and 299 test images, (8, 8, 1), of the digits "0" to "9".

    Every sixth image is a test image: the file is sorted by writer, so both parts have all writers.
    Decoded once for all processes, if the cache can be written.
    """
    try:
        return decoded_once(NAME, f"{NAME}-1", _decode)
    except UserError:  # no such place
        return _decode()


def _decode() -> LabelledData:
    from sklearn.datasets import load_digits  # a second, in every process that trains

    digits = load_digits()
    images = np.rint(digits.images * (255 / _LEVELS)).astype(np.uint8)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    is_test = np.arange(len(labels)) % 6 == 5
    train, test = ((images[rows], labels[rows]) for rows in (~is_test, is_test))
    return clean_data(NAME, *train, *test, tuple(map(str, digits.target_names)))
