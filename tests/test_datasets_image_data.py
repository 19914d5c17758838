"""Checks of a data set at the door, its subsets and fingerprint, and the digits."""

from dataclasses import replace

import numpy as np
import pytest

from chainer_jo.data import digits
from chainer_jo.data.labelled_data import clean_data
from chainer_jo.errors import UserError


def small(**changes):
    rng = np.random.default_rng(0)
    fields = dict(
        name="small",
        train_images=rng.integers(256, size=(12, 4, 5, 3), dtype=np.uint8),
        true_labels=np.tile([2, 0, 1], 4).astype(np.int32),
        test_images=rng.integers(256, size=(6, 4, 5, 3), dtype=np.uint8),
        test_labels=np.tile([0, 1, 2], 2).astype(np.int32),
        class_names=("a", "b", "c"),
    )
    return clean_data(**(fields | changes))


@pytest.mark.parametrize(("changes", "message"), [
    (dict(train_images=np.zeros((12, 4, 5, 3), np.float32)), "train part: images are float32"),
    (dict(train_images=np.zeros((12, 4, 5), np.uint8)),
     r"train part: images are uint8 \(12, 4, 5\)"),
    (dict(test_labels=np.zeros(6, np.int64)), r"test part: labels are int64 \(6,\)"),
    (dict(test_labels=np.zeros(5, np.int32)), r"labels are int32 \(5,\), expected int32 \(6,\)"),
    (dict(true_labels=np.full(12, 3, np.int32)), "from 3 to 3, expected int32 .* from 0 to 2"),
    (dict(true_labels=np.full(12, -1, np.int32)), "from -1 to -1, expected .* from 0 to 2"),
    (dict(true_labels=[0] * 12), r"train part: labels are list, expected int32 \(12,\)"),
    (dict(train_images=None), "train part: images are NoneType, expected uint8"),
    (dict(class_names=(0, 1, 2)), r"'small': class names \[0, 1, 2\], expected different str"),
    (dict(class_names=("a", "b", "b")), r"class names \['a', 'b', 'b'\], expected different"),
    (dict(test_images=np.zeros((6, 5, 4, 3), np.uint8)), "test images .* expected one"),
    (dict(test_images=np.zeros((0, 4, 5, 3), np.uint8), test_labels=np.zeros(0, np.int32)),
     "test part: no images"),
])  # fmt: skip
def test_arrays_that_do_not_fit(changes, message):
    with pytest.raises(UserError, match=message):
        small(**changes)


def test_noisy_labels_need_a_validation_set():
    data = small()
    noisy = replace(data.train, labels=data.train.labels[::-1].copy())
    replace(data, train=noisy, validation=data.test)
    with pytest.raises(
        UserError, match="'small': the training labels are noisy; give a validation set"
    ):
        replace(data, train=noisy)


def test_subset_takes_the_first_of_each_class_in_order():
    data = small()
    few = data.subset(train_per_class=2, test_per_class=1)
    assert few.train.labels.tolist() == [2, 0, 1, 2, 0, 1]
    np.testing.assert_array_equal(few.train.images, data.train.images[:6])
    np.testing.assert_array_equal(few.test.images, data.test.images[:3])
    for number in (0, 5):
        words = f"{number} train images per class asked for, expected 1 to 4"
        with pytest.raises(UserError, match=words):
            data.subset(train_per_class=number)


def test_shrunk_pixels_are_the_rounded_means_of_squares():
    images = np.zeros((2, 2, 4, 1), np.uint8)
    images[0, :, :2, 0] = [[250, 251], [252, 252]]  # 251.25
    images[0, :, 2:, 0] = [[1, 1], [0, 0]]  # 0.5
    labels = np.array([0, 1], np.int32)
    data = clean_data("small", images, labels, images[::-1], labels, ("a", "b")).shrunk(2)
    assert data.train.images[..., 0].tolist() == [[[251, 1]], [[0, 0]]]
    assert data.test.images[..., 0].tolist() == [[[0, 0]], [[251, 1]]]
    with pytest.raises(UserError, match=r"images of 4 x 5 pixels shrunk by 2, expected a divisor"):
        small().shrunk(2)


def test_fingerprint_follows_the_content():
    data = small()
    pixel, label = data.train.images.copy(), data.test.labels.copy()
    assert data.fingerprint() == "5988284a24853424"  # of finished runs
    pixel[3, 1, 1, 0] ^= 1
    label[:2] = label[1::-1]
    others = [
        small(train_images=pixel),
        small(test_labels=label),
        small(class_names=("a", "b", "d")),
        data.subset(train_per_class=3),
    ]
    prints = {data.fingerprint(), *(other.fingerprint() for other in others)}
    assert len(prints) == 5
    assert all(len(p) == 16 and int(p, 16) >= 0 for p in prints)
    assert small(name="renamed").fingerprint() == data.fingerprint()


@pytest.mark.usefixtures("cache")  # where they have not been decoded before
def test_digits_are_scikit_learns_every_sixth_a_test_image():
    from sklearn.datasets import load_digits

    original, data = load_digits(), digits.load()
    assert data.name == "digits"
    assert data.class_names == tuple("0123456789")
    is_test = np.arange(1797) % 6 == 5
    for part, rows in ((data.train, ~is_test), (data.test, is_test)):
        assert part.images.shape[1:] == (8, 8, 1)
        np.testing.assert_array_equal(part.labels, original.target[rows])
        np.testing.assert_allclose(part.images[..., 0], original.images[rows] * 255 / 16, atol=0.5)
