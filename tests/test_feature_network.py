"""The perceptron as one function against Chainer's own functions."""

import chainer
import chainer.functions as F
import numpy as np
import pytest

from chainer_jo.relabel.judge.features import FeatureNetwork

N, D, H, C = 7, 5, 4, 3


def stock(network, x):
    bn = network.bn
    z = F.linear(x, network.hidden.W)
    if chainer.config.train:
        statistics = {"running_mean": bn.avg_mean, "running_var": bn.avg_var}
        h = F.batch_normalization(z, bn.gamma, bn.beta, **statistics)
    else:
        h = F.fixed_batch_normalization(z, bn.gamma, bn.beta, bn.avg_mean, bn.avg_var)
    return F.linear(F.relu(h), network.dense.W, network.dense.b)


@pytest.mark.parametrize("train", [True, False])
def test_values_gradients_and_statistics_are_chainers(train):
    found = {}
    for name, function in (("stock", stock), ("own", FeatureNetwork.forward)):
        rng = np.random.default_rng(3)
        network = FeatureNetwork(D, C, H, np.random.RandomState(1))
        bn, x = network.bn, chainer.Variable(rng.standard_normal((N, D), np.float32))
        for array in (bn.gamma.array, bn.beta.array, network.dense.b.array, bn.avg_mean):
            array[...] = rng.normal(size=array.shape)
        bn.avg_var[...] = rng.uniform(0.5, 2, H)
        with chainer.using_config("train", train):
            y = function(network, x)
        y.grad = rng.standard_normal((N, C), np.float32)
        y.backward()
        grads = [variable.grad for variable in (x, *network.params())]
        found[name] = [y.array, bn.avg_mean, bn.avg_var, *grads]
    for own, expected in zip(found["own"], found["stock"], strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_network_has_one_hidden_layer_and_follows_its_seed():
    first, second = (FeatureNetwork(D, C, H, np.random.RandomState(1)) for _ in range(2))
    assert sum(p.size for p in first.params()) == D * H + 2 * H + H * C + C
    for a, b in zip(first.params(), second.params(), strict=True):
        np.testing.assert_array_equal(a.array, b.array)
    x = np.random.default_rng(3).standard_normal((N, D), np.float32)
    assert first(x).shape == (N, C)
    with chainer.using_config("train", False):
        once = first(x).array
        np.testing.assert_array_equal(first(x).array, once)
    assert not np.array_equal(once, first(x).array), "in training the batch's statistics are used"
