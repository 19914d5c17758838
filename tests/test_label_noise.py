"""Transition matrix, posterior and calibration, against the noise and against plain formulas."""

import numpy as np
import pytest
from test_label_errors import PAIRS, C, given_labels

from chainer_jo.method import noise
from chainer_jo.relabel.estimate import label_noise

N = 6000


def truth(seed=0, sharpness=4.0):
    """Probabilities (n, c) and true labels drawn from them: calibrated by construction."""
    rng = np.random.default_rng(seed)
    scores = sharpness * rng.normal(size=(N, C))
    s = np.exp(scores - scores.max(axis=1, keepdims=True))
    s /= s.sum(axis=1, keepdims=True)
    true = (s.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1).astype(np.int32)
    return s, true


NOISES = [("symmetric", 0.2), ("symmetric", 0.6), ("asymmetric", 0.2), ("asymmetric", 0.4)]


@pytest.mark.parametrize("kind,rate", NOISES)
def test_the_transition_matrix_is_that_of_the_noise(kind, rate):
    s, true = truth()
    found = label_noise.estimate_transition(s, given_labels(true, kind, rate))
    expected = noise.transition_matrix(rate, C, PAIRS if kind == "asymmetric" else None)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found, expected, atol=0.04)


@pytest.mark.parametrize("iterations", [1, 3])
def test_an_iteration_is_one_of_em(iterations):
    s, true = truth()
    given = given_labels(true, "asymmetric", 0.4)
    expected = 0.9 * np.eye(C) + 0.1 / C
    for _ in range(iterations):
        counts = np.full((C, C), 1 / C)
        for i in range(N):
            joint = s[i] * expected[:, given[i]]
            counts[:, given[i]] += joint / joint.sum()
        expected = counts / counts.sum(axis=1, keepdims=True)
    found = label_noise.estimate_transition(s, given, iterations=iterations)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_no_row_of_a_class_that_nothing_is_of_is_lost():
    s, true = truth()
    s[:, 3] = 0
    s /= s.sum(axis=1, keepdims=True)
    found = label_noise.estimate_transition(s, given_labels(true, "symmetric", 0.2))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[3], 1 / C)


@pytest.mark.parametrize("exponent", [0.5, 2.0])
@pytest.mark.parametrize("kind,rate", NOISES)
def test_calibration_undoes_a_power(kind, rate, exponent):
    s, true = truth()
    powers = s ** (1 / exponent)
    powers /= powers.sum(axis=1, keepdims=True)
    found, transition = label_noise.calibrate(powers, given_labels(true, kind, rate))
    np.testing.assert_allclose(found, s, atol=0.05)
    expected = noise.transition_matrix(rate, C, PAIRS if kind == "asymmetric" else None)
    np.testing.assert_allclose(transition, expected, atol=0.06)


def test_probabilities_of_zero_are_no_obstacle():
    given = np.array([0, 1, 1, 0, 1])
    s = np.eye(2, dtype=np.float32)[[0, 0, 1, 1, 0]]
    found, transition = label_noise.calibrate(s, given)
    likely = label_noise.posterior(found, given, transition)
    assert np.isfinite(likely).all()
    np.testing.assert_allclose(likely.sum(axis=1), 1)


def alike(n=30_000):
    """Calibrated probabilities (n, c) of a network that confuses classes 0 and 1, and true labels;
    the other classes are certain."""
    rng = np.random.default_rng(0)
    true = (np.arange(n) % C).astype(np.int32)
    s, share = np.eye(C)[true], rng.beta(2, 2, n)
    pair = true < 2
    s[pair, 0], s[pair, 1] = share[pair], 1 - share[pair]
    true[pair] = rng.random(pair.sum()) > share[pair]
    return s, true


def test_errors_beyond_the_confusions_are_kept():
    """5 % of class 2, which the network tells from class 3, are called 3."""
    s, true = alike()
    given = np.where((true == 2) & (np.random.default_rng(1).random(len(true)) < 0.05), 3, true)
    transition = label_noise.calibrate(s, given)[1]
    assert 0.9 * 0.05 < transition[2, 3] < 1.1 * 0.05


def test_lost_errors_are_spread_over_their_row_and_over_all_rows():
    s = np.repeat([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0]], [1050, 300, 150], axis=0)
    transition = np.eye(4)
    transition[0, :2] = 0.9, 0.1
    errors, confused = 0.1 * 1200, 0.3 * 300 / 4
    lost = 0.1 * (1 - errors**2 / (errors**2 + confused**2))
    all_rows = lost * 1200 / 1500
    found = label_noise.beyond_confusion(s, transition)
    first = np.array([0.9, 0.1 - lost, 0, 0]) + (lost + 2 * all_rows) / 9 * np.array([0, 1, 1, 1])
    np.testing.assert_allclose(found[0], first / first.sum())
    other = np.eye(4)[2] + 2 * all_rows / 9 * np.array([1, 1, 0, 1])
    np.testing.assert_allclose(found[2], other / other.sum())


def test_two_classes_keep_their_transition_matrix():
    s = np.random.default_rng(0).dirichlet([1, 1], 500)
    transition = np.array([[0.93, 0.07], [0.2, 0.8]])
    np.testing.assert_allclose(label_noise.beyond_confusion(s, transition), transition)


def test_rows_of_a_class_without_images_and_of_a_class_without_right_labels_sum_to_1():
    s = np.eye(4)[np.arange(400) % 3]
    s[::2] = [0.4, 0.3, 0.3, 0]
    transition = np.array([[0, 1, 0, 0], [0.2, 0.6, 0.2, 0], [0.3, 0.3, 0.4, 0], [0.25] * 4])
    found = label_noise.beyond_confusion(s, transition)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
