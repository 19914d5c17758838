"""Handwritten digits from scikit-learn: no download and no files needed."""

from __future__ import annotations

import numpy as np

from chainer_jo.data.array_cache import decoded_once
from chainer_jo.data.image_data import ImageData
from chainer_jo.errors import UserError

NAME = "digits"
_LEVELS = 16  # the originals are ink counts 0..16


def load() -> ImageData:
    """1,498 training and 299 test images, (8, 8, 1), of the digits "0" to "9".

    Every sixth image is a test image: the file is sorted by writer, so both parts have all writers.
    Decoded once for all processes, if the cache can be written.
    """
    try:
        return decoded_once(NAME, f"{NAME}-1", _decode)
    except UserError:  # no such place
        return _decode()


def _decode() -> ImageData:
    from sklearn.datasets import load_digits  # a second, in every process that trains

    digits = load_digits()
    images = np.rint(digits.images * (255 / _LEVELS)).astype(np.uint8)[..., np.newaxis]
    labels = digits.target.astype(np.int32)
    is_test = np.arange(len(labels)) % 6 == 5
    return ImageData(
        name=NAME,
        train_images=images[~is_test],
        true_labels=labels[~is_test],
        test_images=images[is_test],
        test_labels=labels[is_test],
        class_names=tuple(str(name) for name in digits.target_names),
    )
