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


def biased(s, power=2.0):
    """A network that is too sure and prefers class 0 to class 1: softmax(W log s + b) undoes it."""
    powers = s**power * np.array([4.0, 0.5, 1, 1])
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("power", [0.5, 2.0])
@pytest.mark.parametrize("kind,rate", NOISES)
def test_correction_undoes_a_power_and_a_preference(kind, rate, power):
    s, true = truth()
    given = given_labels(true, kind, rate)
    found, transition = label_noise.explanations(biased(s, power), given)[0]
    assert np.abs(found - s).mean() < 0.02 < np.abs(biased(s, power) - s).mean()
    expected = noise.transition_matrix(rate, C, PAIRS if kind == "asymmetric" else None)
    np.testing.assert_allclose(transition, expected, atol=0.06)


@pytest.mark.parametrize("rate", [0, 0.01])
def test_confusions_of_the_network_are_no_errors_of_labels(rate):
    s, true = truth(sharpness=3.0)
    given = noise.symmetric(true, rate * C / (C - 1), C, np.random.default_rng(1))
    found, transition = label_noise.explanations(biased(s), given)[0]
    errors = found.mean(axis=0)[:, None] * transition * (1 - np.eye(C))
    assert errors.sum() == pytest.approx((given != true).mean(), abs=0.005)
    em = label_noise.estimate_transition(biased(s), given)
    assert biased(s).mean(axis=0) @ (1 - np.diag(em)) > rate + 0.03
    likely = label_noise.posterior(found, given, transition)
    assert (likely.argmax(axis=1) == true).mean() >= (given == true).mean()


def test_one_sided_errors_of_a_biased_network_are_found():
    """A tenth of class 0 is labelled 1; the network confuses the two."""
    s, true = truth(sharpness=3.0)
    wrong = (true == 0) & (np.random.default_rng(1).random(N) < 0.1)
    given = np.where(wrong, 1, true).astype(np.int32)
    expected = np.eye(C)
    expected[0, :2] = 0.9, 0.1
    transition = label_noise.explanations(biased(s), given)[0][1]
    np.testing.assert_allclose(transition, expected, atol=0.03)


def test_slope_of_the_loss(monkeypatch):
    """The slope at the best T is the slope of the loss whose T is the best for each point."""
    import scipy.optimize

    def check(loss, start, **_):
        point, step = start + 0.1 * np.random.default_rng(0).normal(size=start.size), 1e-4

        def best(point):
            for _ in range(40):
                found = loss(point)
            return found

        slope = best(point)[1]
        for k in (0, 1, C, C * C - 1, C * C, C * C + 2):  # the last two are of b
            shift = step * np.eye(start.size)[k]
            numerical = (best(point + shift)[0] - best(point - shift)[0]) / (2 * step)
            assert numerical == pytest.approx(slope[k], rel=1e-2, abs=1)
        return scipy.optimize.OptimizeResult(x=point)

    monkeypatch.setattr(scipy.optimize, "minimize", check)
    s, true = truth()
    label_noise.explanations(biased(s), given_labels(true))


def test_only_a_pair_with_many_errors_has_a_rate_of_its_own():
    s, true = truth(sharpness=30.0)
    rng = np.random.default_rng(1)
    given = noise.symmetric(true, 0.02, C, rng)
    given[(true == 2) & (rng.random(N) < 0.1)] = 3
    found = label_noise.own_rates(s, given, label_noise.estimate_transition(s, given))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[2, 3] == pytest.approx((given[true == 2] == 3).mean(), abs=0.01)
    others = found[~np.eye(C, dtype=bool) & (found != found[2, 3])]
    np.testing.assert_allclose(others, 0.005, atol=0.002)
    assert np.ptp(others) < 1e-6


def test_even_errors_are_as_many():
    s, true = truth()
    transition = noise.transition_matrix(0.4, C, PAIRS)
    even = label_noise.even_errors(s, transition)
    np.testing.assert_allclose(even.sum(axis=1), 1)
    assert np.ptp(even[~np.eye(C, dtype=bool)]) == np.ptp(np.diag(even)) == 0
    assert even[0, 0] == pytest.approx(s.mean(axis=0) @ np.diag(transition))


def test_rows_of_a_class_without_images_and_of_a_class_without_right_labels_sum_to_1():
    s = np.eye(4)[np.arange(400) % 3]
    s[::2] = [0.4, 0.3, 0.3, 0]
    given = np.where(s[:, 0] == 1, 1, np.arange(400) % 3).astype(np.int32)
    for found, transition in label_noise.explanations(s, given):
        assert np.isfinite(found).all() and (transition >= 0).all()
        np.testing.assert_allclose(transition.sum(axis=1), 1)
        likely = label_noise.posterior(found, given, transition)
        np.testing.assert_allclose(likely.sum(axis=1), 1)
