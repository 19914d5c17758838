"""ResNet-50 with random weights, in both formats, against Chainer's layers put together by hand."""

import re

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from chainer_jo.errors import UserError
from chainer_jo.method.resnet50 import load_resnet50


def chainers_layers(seed=0):
    """`chainer.links.ResNet50Layers` with random weights; its first convolution's bias is zero."""
    rng = np.random.default_rng(seed)
    link = L.ResNet50Layers(pretrained_model=None)
    for part in link.links():
        if isinstance(part, L.BatchNormalization):
            part.gamma.array[...] = rng.uniform(0.5, 1, part.gamma.shape)
            part.beta.array[...] = rng.normal(scale=0.1, size=part.beta.shape)
            part.avg_mean[...] = rng.normal(scale=0.1, size=part.avg_mean.shape)
            part.avg_var[...] = rng.uniform(0.5, 2, part.avg_var.shape)
    link.conv1.b.array[...] = 0
    link.fc6.b.array[...] = rng.normal(size=1000)
    return link


#: Torchvision's names, as regular expressions of Chainer's.
NAMES = {
    r"res(\d)/a/": r"res\1/b0/", r"res(\d)/b(\d)/": lambda m: f"layer{int(m[1]) - 1}.{m[2]}.",
    "conv4/": "downsample.0.", "bn4/": "downsample.1.", "fc6/": "fc.", "/": ".",
    r"\.(gamma|W)$": ".weight", r"\.(beta|b)$": ".bias", "avg_": "running_",
    "running_N|N$": "num_batches_tracked",
}  # fmt: skip


def in_torchvisions_names(link):
    """{torchvision's name: float32 array} of Chainer's layers."""
    weights = {}
    for name, array in chainer.serializers.npz.serialize(link).items():
        for ours, theirs in NAMES.items():
            name = re.sub(ours, theirs, name)
        weights[name] = array
    del weights["conv1.bias"]  # zero
    return weights


def reference(layers, x, stride_in_3x3, eps):
    """Pool5 features (n, 2048) and logits (n, 1000) of x (n, 3, h, w), by Chainer's own layers."""
    link = L.ResNet50Layers(pretrained_model=None, downsample_fb=stride_in_3x3)
    link.copyparams(layers)
    for part in link.links():
        if isinstance(part, L.BatchNormalization):
            part.eps = eps
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        h = F.relu(link.bn1(link.conv1(x)))
        # torchvision pads all around, Caffe only lets the last window hang over the edge.
        pad = int(stride_in_3x3)
        h = F.max_pooling_2d(h, 3, 2, pad, cover_all=not pad)
        features = F.mean(link.res5(link.res4(link.res3(link.res2(h)))), axis=(2, 3))
        return features.array, link.fc6(features).array


@pytest.fixture(scope="module")
def layers():
    return chainers_layers()


@pytest.fixture(scope="module")
def npz(layers, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "resnet50.npz"
    chainer.serializers.save_npz(path, layers, compression=False)
    return path


@pytest.fixture(scope="module")
def safetensors(layers, tmp_path_factory):
    numpy_format = pytest.importorskip("safetensors.numpy")
    path = tmp_path_factory.mktemp("weights") / "resnet50.safetensors"
    numpy_format.save_file(in_torchvisions_names(layers), path)
    return path


@pytest.fixture
def images():
    """Two prepared images (2, 3, 64, 64)."""
    return np.random.default_rng(1).normal(size=(2, 3, 64, 64)).astype(np.float32)


def run(network, x):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        features = network.pool5(x).array
        return features, network(x).array


@pytest.mark.parametrize("form, torchvision, eps", [
    ("npz", False, 2e-5), ("safetensors", True, 1e-5),
])  # fmt: skip
def test_both_forms_of_weights(form, torchvision, eps, layers, images, request):
    expected = reference(layers, images, stride_in_3x3=torchvision, eps=eps)
    assert expected[0].shape == (2, 2048)
    for ours, theirs in zip(
        run(load_resnet50(request.getfixturevalue(form)), images), expected, strict=True
    ):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * np.abs(theirs).max(), strict=True)


def test_the_bias_of_chainers_first_convolution_is_kept_in_the_running_mean(images, tmp_path):
    link = chainers_layers()
    link.conv1.b.array[...] = np.random.default_rng(2).normal(size=64)
    chainer.serializers.save_npz(tmp_path / "biased.npz", link, compression=False)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        expected = link(images, layers=["pool5"])["pool5"].array
    features, _ = run(load_resnet50(tmp_path / "biased.npz"), images)
    np.testing.assert_allclose(features, expected, atol=1e-4 * np.abs(expected).max())


def test_fine_tuning_to_other_classes(npz, images):
    network, whole = load_resnet50(npz, 14, np.random.RandomState(0)), load_resnet50(npz)
    assert whole.count_params() == 25_557_032  # the paper's 25.6 million, as torchvision counts
    np.testing.assert_array_equal(run(network, images)[0], run(whole, images)[0])
    network.cleargrads()
    logits = network(images)
    assert logits.shape == (2, 14)
    chainer.functions.softmax_cross_entropy(logits, np.array([3, 13], np.int32)).backward()
    assert all(np.isfinite(p.grad).all() and p.grad.any() for p in network.params())


@pytest.mark.parametrize("name, array, words", [
    ("res3/b2/conv2/W", None, r"'res3/b2/conv2/W' is none, expected \(128, 128, 3, 3\)"),
    ("bn1/avg_var", np.ones(3), r"'bn1/avg_var' is \(3,\), expected \(64,\)"),
    ("res4/b6/bn1/gamma", np.ones(256), r"'res4/b6/bn1/gamma' is \(256,\), expected none"),
    ("conv1/b", np.ones(3), r"'conv1/b' is \(3,\), expected none"),
], ids=["missing", "another shape", "a deeper network", "a bias that does not fit"])  # fmt: skip
def test_what_is_no_resnet50_is_named(name, array, words, npz, tmp_path):
    with np.load(npz) as file:
        arrays = {key: file[key] for key in file.files} | {name: array}
    np.savez(tmp_path / "o.npz", **{k: a for k, a in arrays.items() if a is not None})
    with pytest.raises(UserError, match=words):
        load_resnet50(tmp_path / "o.npz")


def test_another_file_or_none_is_refused(tmp_path):
    """An .npz of something else: test_arrays_of_others.py."""
    pytest.importorskip("safetensors")
    header = b'{"x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}'
    for content in (b"not what the name says", len(header).to_bytes(8, "little") + header + b"1"):
        (tmp_path / "broken.safetensors").write_bytes(content)
        with pytest.raises(UserError, match="expected a whole .safetensors file"):
            load_resnet50(tmp_path / "broken.safetensors")
    (tmp_path / "resnet50.pth").touch()
    for name in ("resnet50.pth", "missing.npz"):
        with pytest.raises(UserError, match="convert_caffemodel_to_npz.*safetensors"):
            load_resnet50(tmp_path / name)
