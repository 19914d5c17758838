"""Label noise, and the split into training and validation images, over many seeds."""

import numpy as np
import pytest

from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method import noise
from chainer_jo.method.noisy_split import split

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
DIGITS = tuple("0123456789")
RATES = [0.0, 0.07, 0.1, 0.3, 0.5, 0.7, 1.0]


def true_labels(per_class=100):
    labels = np.repeat(np.arange(10, dtype=np.int32), per_class)
    return np.random.default_rng(9).permutation(labels)


def observed_matrix(labels, noisy_draws, num_classes=10):
    """How often true class i carried label j, over all draws; rows sum to 1."""
    counts = np.zeros((num_classes, num_classes))
    for noisy in noisy_draws:
        np.add.at(counts, (labels, noisy), 1)
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rate", RATES)
def test_symmetric_redraws_ceil_rate_n_uniformly(rate):
    labels = true_labels()
    draws = [noise.symmetric(labels, rate, 10, np.random.default_rng(seed)) for seed in range(200)]
    expected = noise.transition_matrix(rate, 10)
    # 200 draws of 100 images per cell: a standard deviation of at most 0.5 / sqrt(20,000) = 0.0035.
    np.testing.assert_allclose(observed_matrix(labels, draws), expected, atol=0.018)
    assert max((noisy != labels).sum() for noisy in draws) <= np.ceil(round(rate * 1000, 6))
    wrong = np.mean([noisy != labels for noisy in draws])
    assert wrong == pytest.approx(0.9 * rate, abs=0.005)


def test_symmetric_takes_the_rate_up_to_a_whole_image():
    """A redrawn label is right half the time; the most wrong ones over many seeds show how many."""
    labels = np.zeros(10, dtype=np.int32)
    most = max(
        (noise.symmetric(labels, 0.31, 2, np.random.default_rng(s)) != 0).sum() for s in range(300)
    )
    assert most == 4


def test_rates_are_not_misled_by_binary_rounding():
    labels = np.zeros(100, dtype=np.int32)
    assert 0.07 * 100 > 7
    moved = noise.asymmetric(labels, 0.07, {0: 1}, np.random.default_rng(0))
    assert (moved == 1).sum() == 7


@pytest.mark.parametrize("names", [CIFAR10, DIGITS])
@pytest.mark.parametrize("rate", RATES)
def test_asymmetric_moves_exactly_the_fraction_of_each_source_class(names, rate):
    labels = true_labels()
    transitions = noise.transitions_of(names)
    moved_images = np.zeros(len(labels), dtype=int)
    for seed in range(50):
        noisy = noise.asymmetric(labels, rate, transitions, np.random.default_rng(seed))
        np.testing.assert_allclose(
            observed_matrix(labels, [noisy]),
            noise.transition_matrix(rate, 10, transitions),
            atol=1e-12,
        )
        moved_images += noisy != labels
    if 0.3 <= rate <= 0.7:
        of_sources = moved_images[np.isin(labels, list(transitions))]
        assert 0 < of_sources.min() <= moved_images.max() < 50, "not always the same images"


def test_asymmetric_pairs_are_the_papers_by_their_names_in_any_order():
    for names in (CIFAR10, CIFAR10[::-1]):
        assert {names[i]: names[j] for i, j in noise.transitions_of(names).items()} == {
            "truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat",
        }  # fmt: skip
    with pytest.raises(UserError, match="asymmetric noise for the classes apple, pear: expected"):
        noise.transitions_of(("apple", "pear"))


@pytest.mark.parametrize("draw, by", [(noise.symmetric, 10), (noise.asymmetric, {0: 1})])
def test_noise_leaves_its_input_alone_and_refuses_rates_outside_0_1(draw, by):
    labels, rng = true_labels(), np.random.default_rng(0)
    assert draw(labels, 0.5, by, rng).dtype == np.int32
    np.testing.assert_array_equal(labels, true_labels())
    for rate in (-0.1, 1.01, float("nan")):
        with pytest.raises(UserError, match=rf"noise rate {rate}: expected a number in \[0, 1\]"):
            draw(labels, rate, by, rng)


def test_a_split_is_sorted_disjoint_and_complete():
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
