"""The split into training and validation images."""

import numpy as np
import pytest

from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method.noisy_split import split


def test_sorted_disjoint_and_complete():
    labels = digits.load().train.labels
    train, validation = split(labels, 10, np.random.default_rng(1))
    assert train.dtype == validation.dtype == np.int64
    assert (np.diff(train) > 0).all() and (np.diff(validation) > 0).all()
    assert sorted([*train, *validation]) == list(range(len(labels)))
    for k in range(10):
        assert (labels[validation] == k).sum() == round(0.1 * (labels == k).sum())


def test_every_image_is_as_likely_to_be_held_back():
    labels = np.repeat([0, 1], 20)
    times = np.zeros(40)
    for seed in range(2000):
        times[split(labels, 2, np.random.default_rng(seed))[1]] += 1
    # Expected 200 times each, standard deviation sqrt(2000 * 0.1 * 0.9) = 13.4.
    assert np.abs(times - 200).max() < 5 * 13.4


def test_class_too_small_to_hold_one_back():
    said = "class 1 has 4 images, 0 of them for validation.*at least one"
    with pytest.raises(UserError, match=said):
        split(np.array([0] * 20 + [1] * 4), 2, np.random.default_rng(0))
