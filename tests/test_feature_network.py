"""The perceptron as one function against Chainer's own functions."""

import chainer
import chainer.functions as F
import numpy as np
import pytest

from chainer_jo.relabel.feature_network import FeatureNetwork, perceptron

N, D, H, C = 7, 5, 4, 3


def arrays(dtype=np.float32):
    rng = np.random.default_rng(3)
    shapes = ((N, D), (H, D), (H,), (H,), (C, H), (C,))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def statistics(dtype=np.float32):
    rng = np.random.default_rng(4)
    return rng.normal(size=H).astype(dtype), rng.uniform(0.5, 2, H).astype(dtype)


def stock(x, W, gamma, beta, mean, var, V, b):
    z = F.linear(x, W)
    if chainer.config.train:
        h = F.batch_normalization(z, gamma, beta, running_mean=mean, running_var=var)
    else:
        h = F.fixed_batch_normalization(z, gamma, beta, mean, var)
    return F.linear(F.relu(h), V, b)


@pytest.mark.parametrize("train", [True, False])
def test_values_gradients_and_statistics_are_chainers(train):
    gy = np.random.default_rng(5).normal(size=(N, C)).astype(np.float32)
    found = {}
    for name, function in (("stock", stock), ("own", perceptron)):
        x, W, gamma, beta, V, b = variables = [chainer.Variable(a) for a in arrays()]
        mean, var = statistics()
        with chainer.using_config("train", train):
            y = function(x, W, gamma, beta, mean, var, V, b)
        y.grad = gy
        y.backward()
        found[name] = [y.array, mean, var, *(v.grad for v in variables)]
    for own, expected in zip(found["own"], found["stock"], strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_network_has_one_hidden_layer_and_follows_its_seed():
    first, second = (FeatureNetwork(D, C, H, np.random.RandomState(1)) for _ in range(2))
    assert sum(p.size for p in first.params()) == D * H + 2 * H + H * C + C
    for a, b in zip(first.params(), second.params(), strict=True):
        np.testing.assert_array_equal(a.array, b.array)
    x = arrays()[0]
    assert first(x).shape == (N, C)
    with chainer.using_config("train", False):
        once = first(x).array
        np.testing.assert_array_equal(first(x).array, once)
    assert not np.array_equal(once, first(x).array), "in training the batch's statistics are used"
