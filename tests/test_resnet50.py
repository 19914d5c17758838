"""ResNet-50 with random weights, in both formats, against Chainer's layers put together by hand."""

import struct
import zipfile

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from chainer_jo.errors import UserError
from chainer_jo.method.resnet50 import ResNet50, load_resnet50

UNITS = (3, 4, 6, 3)
WIDTHS = (64, 128, 256, 512)


def random_weights(seed=0):
    """{torchvision's name: float32 array} of a whole ResNet-50, the shapes from the paper."""
    rng = np.random.default_rng(seed)
    weights = {}

    def conv(name, bn, out, inside, k):
        scale = np.sqrt(2 / (inside * k * k))
        weights[f"{name}.weight"] = rng.normal(scale=scale, size=(out, inside, k, k))
        weights[f"{bn}.weight"] = rng.uniform(0.5, 1, out)
        weights[f"{bn}.bias"] = rng.normal(scale=0.1, size=out)
        weights[f"{bn}.running_mean"] = rng.normal(scale=0.1, size=out)
        weights[f"{bn}.running_var"] = rng.uniform(0.5, 2, out)

    conv("conv1", "bn1", 64, 3, 7)
    inside = 64
    for stage, (units, width) in enumerate(zip(UNITS, WIDTHS, strict=True), 1):
        for unit in range(units):
            p = f"layer{stage}.{unit}"
            conv(f"{p}.conv1", f"{p}.bn1", width, inside, 1)
            conv(f"{p}.conv2", f"{p}.bn2", width, width, 3)
            conv(f"{p}.conv3", f"{p}.bn3", 4 * width, width, 1)
            if unit == 0:
                conv(f"{p}.downsample.0", f"{p}.downsample.1", 4 * width, inside, 1)
            inside = 4 * width
    weights["fc.weight"] = rng.normal(scale=0.02, size=(1000, 2048))
    weights["fc.bias"] = rng.normal(size=1000)
    return {name: array.astype(np.float32) for name, array in weights.items()}


def in_chainers_link(weights, **options):
    """`chainer.links.ResNet50Layers` with these weights; its first convolution's bias is zero."""
    link = L.ResNet50Layers(pretrained_model=None, **options)

    def put(conv, bn, torch_conv, torch_bn):
        conv.W.array[...] = weights[f"{torch_conv}.weight"]
        bn.gamma.array[...] = weights[f"{torch_bn}.weight"]
        bn.beta.array[...] = weights[f"{torch_bn}.bias"]
        bn.avg_mean[...] = weights[f"{torch_bn}.running_mean"]
        bn.avg_var[...] = weights[f"{torch_bn}.running_var"]

    put(link.conv1, link.bn1, "conv1", "bn1")
    link.conv1.b.array[...] = 0
    for stage, units in enumerate(UNITS, 1):
        block = link[f"res{stage + 1}"]
        for unit in range(units):
            bottleneck = block["a" if unit == 0 else f"b{unit}"]
            p = f"layer{stage}.{unit}"
            for i in (1, 2, 3):
                put(bottleneck[f"conv{i}"], bottleneck[f"bn{i}"], f"{p}.conv{i}", f"{p}.bn{i}")
        put(
            block.a.conv4,
            block.a.bn4,
            f"layer{stage}.0.downsample.0",
            f"layer{stage}.0.downsample.1",
        )
    link.fc6.W.array[...] = weights["fc.weight"]
    link.fc6.b.array[...] = weights["fc.bias"]
    return link


def reference(weights, x, stride_in_3x3, eps):
    """Pool5 features (n, 2048) and logits (n, 1000) of x (n, 3, h, w), by Chainer's own layers."""
    link = in_chainers_link(weights, downsample_fb=stride_in_3x3)
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
def weights():
    return random_weights()


@pytest.fixture(scope="module")
def npz(weights, tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "resnet50.npz"
    chainer.serializers.save_npz(path, in_chainers_link(weights), compression=False)
    return path


@pytest.fixture(scope="module")
def safetensors(weights, tmp_path_factory):
    numpy_format = pytest.importorskip("safetensors.numpy")
    path = tmp_path_factory.mktemp("weights") / "resnet50.safetensors"
    counters = {"bn1.num_batches_tracked": np.array(3)}
    numpy_format.save_file({**weights, **counters}, path)
    return path


@pytest.fixture
def images():
    """Two prepared images (2, 3, 64, 64)."""
    return np.random.default_rng(1).normal(size=(2, 3, 64, 64)).astype(np.float32)


def run(network, x):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        features = network.pool5(x).array
        return features, network(x).array


def assert_same(actual, expected):
    for ours, reference in zip(actual, expected, strict=True):
        assert ours.shape == reference.shape
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, reference, atol=1e-4 * np.abs(reference).max())


@pytest.mark.parametrize("form, torchvision, eps", [
    ("npz", False, 2e-5), ("safetensors", True, 1e-5),
])  # fmt: skip
def test_both_forms_of_weights(form, torchvision, eps, weights, images, request):
    expected = reference(weights, images, stride_in_3x3=torchvision, eps=eps)
    assert expected[0].shape == (2, 2048)
    assert_same(run(load_resnet50(request.getfixturevalue(form)), images), expected)


def test_the_bias_of_chainers_first_convolution_is_kept_in_the_running_mean(
    weights, images, tmp_path
):
    link = in_chainers_link(weights)
    link.conv1.b.array[...] = np.random.default_rng(2).normal(size=64)
    chainer.serializers.save_npz(tmp_path / "biased.npz", link, compression=False)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        expected = link(images, layers=["pool5"])["pool5"].array
    features, _ = run(load_resnet50(tmp_path / "biased.npz"), images)
    np.testing.assert_allclose(features, expected, atol=1e-4 * np.abs(expected).max())


def test_fine_tuning_to_other_classes(npz, images):
    network = load_resnet50(npz, num_classes=14, rng=np.random.RandomState(0))
    np.testing.assert_array_equal(run(network, images)[0], run(load_resnet50(npz), images)[0])
    network.cleargrads()
    logits = network(images)
    assert logits.shape == (2, 14)
    chainer.functions.softmax_cross_entropy(logits, np.array([3, 13], np.int32)).backward()
    assert all(np.isfinite(p.grad).all() and p.grad.any() for p in network.params())


def test_number_of_parameters():
    # The paper's 25.6 million: torchvision counts 25,557,032.
    assert ResNet50().count_params() == 25_557_032


@pytest.mark.parametrize("name, array, words", [
    ("res3/b2/conv2/W", None, r"no array 'res3/b2/conv2/W'.*\(128, 128, 3, 3\)"),
    ("bn1/avg_var", np.ones(3), r"'bn1/avg_var' has shape \(3,\), expected \(64,\)"),
    ("res4/b6/bn1/gamma", np.ones(256), "'res4/b6/bn1/gamma' belongs to another network"),
    ("conv1/b", np.ones(3), "'conv1/b' belongs to another network"),
], ids=["missing", "another shape", "a deeper network", "a bias that does not fit"])  # fmt: skip
def test_what_is_no_resnet50_is_named(name, array, words, npz, tmp_path):
    with np.load(npz) as file:
        arrays = {key: file[key] for key in file.files} | {name: array}
    np.savez(tmp_path / "o.npz", **{k: a for k, a in arrays.items() if a is not None})
    with pytest.raises(UserError, match=words):
        load_resnet50(tmp_path / "o.npz")


def test_torchvisions_own_name_is_named(safetensors, weights, tmp_path):
    numpy_format = pytest.importorskip("safetensors.numpy")
    short = {
        name: array
        for name, array in weights.items()
        if name != "layer2.0.downsample.1.running_var"
    }
    numpy_format.save_file(short, tmp_path / "short.safetensors")
    with pytest.raises(UserError, match=r"no array 'layer2\.0\.downsample\.1\.running_var'"):
        load_resnet50(tmp_path / "short.safetensors")


@pytest.mark.parametrize("name", ["broken.npz", "broken.safetensors"])
def test_a_file_of_something_else_is_refused(name, tmp_path):
    if name.endswith(".safetensors"):
        pytest.importorskip("safetensors")
    (tmp_path / name).write_bytes(b"not what the name says")
    with pytest.raises(UserError, match="expected a whole"):
        load_resnet50(tmp_path / name)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "objects.npz", objects=np.zeros(1, object))
    with pytest.raises(UserError, match="Object arrays cannot be loaded"):
        load_resnet50(tmp_path / "objects.npz")


@pytest.mark.parametrize("header", [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': ((64,)",
])  # fmt: skip
def test_a_forged_header_is_refused(header, tmp_path):
    with zipfile.ZipFile(tmp_path / "forged.npz", "w") as archive:
        archive.writestr(
            "fc6/W.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode()
        )
    with pytest.raises(UserError, match="expected a whole .npz file"):
        load_resnet50(tmp_path / "forged.npz")


@pytest.mark.parametrize("name", ["resnet50.pth", "missing.npz", "missing.safetensors"])
def test_no_weights_says_how_to_get_them(name, tmp_path):
    with pytest.raises(UserError, match="convert_caffemodel_to_npz.*safetensors"):
        load_resnet50(tmp_path / name)
