"""Scaling of features: standardised or not by what predicts labels; extreme numbers; networks that
keep their scaling; and their perceptron as one function against Chainer's own functions."""

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import serializers
from sklearn.datasets import load_wine

from chainer_jo.relabel import RelabelClassifier, relabel
from chainer_jo.relabel.estimate.features import HIDDEN, FeatureInput, FeatureNetwork, FeatureSet
from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.relabel.write import network_file


@pytest.fixture(scope="module")
def wine():
    """Columns with standard deviations from 0.1 to 310, true labels, and 10 % wrong ones."""
    features, true = load_wine(return_X_y=True)
    wrong = np.random.default_rng(1).random(len(true)) < 0.1
    return features, true, np.where(wrong, (true + 1) % 3, true)


@pytest.fixture(scope="module")
def blobs():
    """(120, 8) around three corners, true labels, and 10 % wrong ones."""
    rng = np.random.default_rng(0)
    true = np.repeat([0, 1, 2], 40)
    features = (rng.normal(size=(3, 8)) * 3)[true] + rng.normal(size=(120, 8)) * 0.5
    return features, true, np.where(np.arange(120) % 10, true, (true + 1) % 3)


def accuracy(found, true):
    return (np.asarray(found) == true).mean()


def test_labels_of_a_table_get_better_whatever_the_units(wine):
    features, true, given = wine
    errors = relabel(features, given)
    assert accuracy(errors.new, true) > 0.98 > accuracy(given, true)
    assert not errors.doubt
    assert not errors.duplicates, "rows with one proline value are different wines"


def test_columns_of_noise_stay_small(blobs):
    """As in a PCA: many columns of little variance."""
    features, _, given = blobs
    noise = np.random.default_rng(1).normal(size=(120, 60)) * 0.05
    data = FeatureSet(np.concatenate([features, noise], axis=1), given)
    assert data.normalisation[1].shape == ()


def test_standardised_columns(wine):
    features, _, given = wine
    features = np.concatenate([features, np.full((len(features), 1), 0.1)], axis=1)
    data = FeatureSet(features, given)
    np.testing.assert_allclose(data.values[:, :13].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(data.values[:, :13].std(axis=0), 1, atol=1e-6)
    other = FeatureInput(features + 1, *data.normalisation).values
    assert not data.values[:, 13].any() and not other[:, 13].any(), "a constant says nothing"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "change",
    [
        lambda x: x + 1e8,
        lambda x: x + 3e8,
        lambda x: x * 1e-200,
        lambda x: x * 1e13,
        lambda x: x * ([1e13] + [1] * 7),
        lambda x: x * ([1e-200, 1, 1e5] + [1] * 5),
    ],
    ids=["offset", "larger offset", "tiny", "huge", "a huge column", "a tiny and a large column"],
)
def test_offsets_and_units_change_nothing(change, blobs):
    features, true, given = blobs
    errors = relabel(change(features), given)
    assert accuracy(errors.new, true) == 1 and not errors.doubt


def test_float32_features_in_one_scale_are_as_ever(blobs):
    features, _, given = (each.astype(np.float32) for each in blobs)
    data = FeatureSet(features, given.astype(int))
    mean, scale = data.normalisation
    assert mean.dtype == scale.dtype == np.float32
    assert scale == np.float32(np.sqrt(features.var(axis=0, dtype=np.float64).mean()))
    np.testing.assert_array_equal(data.values, (features - mean) / scale)


def test_a_classifier_predicts_with_the_scaling_it_was_fitted_with(wine):
    features, true, given = wine
    model = RelabelClassifier().fit(features[::2], given[::2])
    assert accuracy(model.predict(features[1::2]), true[1::2]) > 0.95


def test_a_network_file_has_one_scale_or_one_for_each_column(wine, tmp_path):
    features, _, given = wine
    about = {"classes": ["a", "b", "c"], "features": 13, "hidden": HIDDEN}
    network = FeatureNetwork(13, 3, HIDDEN, np.random.RandomState(0))
    weights = serializers.npz.serialize(network)
    mean, scale = FeatureSet(features, given).normalisation
    before = mean.astype(np.float32), np.float32(300)  # as files have it that were written before
    for look in ((mean, scale), before):
        normalisation = dict(zip(("mean", "scale"), look, strict=True))
        network_file.save(TrainedNetwork(about, weights, normalisation), tmp_path)
        found = network_file.load(tmp_path).of_features(features)
        inputs = ((features.astype(look[0].dtype) - look[0]) / look[1]).astype(np.float32)
        again = TrainedNetwork(about, weights, {"mean": 0 * mean, "scale": scale**0})
        np.testing.assert_array_equal(found, again.of_features(inputs))


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
