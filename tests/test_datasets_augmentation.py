"""The vectorised augmentation against a loop over images that follows the paper step by step."""

import numpy as np
import pytest

from chainer_jo.errors import UserError
from chainer_jo.method import augmentation

pytestmark = pytest.mark.usefixtures("arithmetic")


def random_images(*shape):
    return np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)


def augment_one(image, mean, dy, dx, flip, pad):
    h, w, c = image.shape
    padded = np.zeros((h + 2 * pad, w + 2 * pad, c))
    padded[pad : pad + h, pad : pad + w] = image / 255 - mean
    crop = padded[dy : dy + h, dx : dx + w]
    return crop[:, ::-1] if flip else crop


@pytest.mark.parametrize("shape", [(50, 32, 32, 3), (17, 8, 8, 1), (9, 7, 5, 2)])
@pytest.mark.parametrize("pad", [0, 1, 4])
@pytest.mark.parametrize("flip", [False, True])
def test_same_as_a_loop_over_images(shape, pad, flip):
    images = random_images(*shape)
    before = images.copy()
    mean = augmentation.mean_image(images)
    dy, dx, flips = augmentation.draw(np.random.default_rng(1), len(images), pad, flip)
    got = augmentation.apply(images, mean, dy, dx, flips, pad)
    expected = [
        augment_one(*one, pad)
        for one in zip(images, [mean] * len(images), dy, dx, flips, strict=True)
    ]
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert got.dtype == np.float32
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(images, before)


def test_draws_are_uniform_and_independent():
    n, pad = 200_000, 2
    dy, dx, flips = augmentation.draw(np.random.default_rng(3), n, pad, flip=True)
    counts = np.zeros((5, 5, 2))
    np.add.at(counts, (dy, dx, flips.astype(int)), 1)
    expected = n / counts.size
    # 6 standard deviations of one cell's count; the seed is fixed.
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_mean_image_is_exact():
    images = random_images(300, 4, 3, 2)
    mean = augmentation.mean_image(images)
    np.testing.assert_allclose(mean, images.astype(np.float64).mean(axis=0) / 255, rtol=1e-7)
    assert mean.dtype == np.float32
    np.testing.assert_allclose(augmentation.normalise(images, mean).mean(axis=0), 0, atol=1e-6)
    with pytest.raises(UserError, match=r"images: float32 \(300, 4, 3, 2\), expected uint8"):
        augmentation.mean_image(np.float32(images / 255))


def test_without_padding_nothing_is_drawn_and_too_much_is_refused():
    rng = np.random.default_rng(7)
    untouched = rng.bit_generator.state
    assert not np.any(augmentation.draw(rng, 10, pad=0, flip=False))
    assert rng.bit_generator.state == untouched
    for pad in (-1, 64):
        with pytest.raises(UserError, match=f"padding {pad}.*0 to 63"):
            augmentation.draw(rng, 1, pad, True)
