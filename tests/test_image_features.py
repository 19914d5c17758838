"""Features computed from image files: the built-in network, its weights, the cache, the choice."""

import csv
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import chainer.functions as F
import numpy as np
import pytest
from chainer import serializers
from chainer.backends import cuda
from class_folders import images_in
from own_images import BY_FEATURES, content, make, one_line, read, run
from PIL import Image

from chainer_jo.errors import UserError
from chainer_jo.method.resnet50 import ResNet50
from chainer_jo.relabel import by_features
from chainer_jo.relabel.estimate import training
from chainer_jo.relabel.estimate.features import FeatureInput
from chainer_jo.relabel.read import image_features, lite0
from chainer_jo.relabel.read.feature_table import read_features
from chainer_jo.relabel.read.labelled_images import read_sets
from chainer_jo.relabel.write import network_file

needs_weights = pytest.mark.skipif(
    lite0.installed() is None, reason=f"needs the package {lite0.PACKAGE}"
)
pytestmark = pytest.mark.usefixtures("cache")
#: Kernel, expansion and output channels of each block.
ARCHITECTURE = [(3, 1, 16), *2 * [(3, 6, 24)], *2 * [(5, 6, 40)], *3 * [(3, 6, 80)]]
ARCHITECTURE += [*3 * [(5, 6, 112)], *4 * [(5, 6, 192)], (3, 6, 320)]


@pytest.fixture(scope="module")
def random_weights():
    """Arrays of the network's names and shapes."""
    rng, arrays = np.random.default_rng(0), {}

    def add(name, norm, *shape):
        scale = np.sqrt(2 / np.prod(shape[1:]))
        arrays[f"{name}.weight"] = rng.normal(0, scale, shape).astype(np.float32)
        for part, low, high in (
            ("weight", 0.5, 1.5), ("bias", -1, 1), ("running_mean", -1, 1), ("running_var", 0.5, 2)
        ):  # fmt: skip
            arrays[f"{norm}.{part}"] = rng.uniform(low, high, shape[0]).astype(np.float32)

    add("_conv_stem", "_bn0", 32, 3, 3, 3)
    c = 32
    for i, (kernel, expansion, out) in enumerate(ARCHITECTURE):
        block, wide = f"_blocks.{i}", expansion * c
        if i:
            add(f"{block}._expand_conv", f"{block}._bn0", wide, c, 1, 1)
        add(f"{block}._depthwise_conv", f"{block}._bn1", wide, 1, kernel, kernel)
        add(f"{block}._project_conv", f"{block}._bn2", out, wide, 1, 1)
        c = out
    add("_conv_head", "_bn1", 1280, c, 1, 1)
    return arrays


def with_chainer(arrays, images):
    """The network by Chainer's convolutions and batch normalisation."""

    def layer(x, name, norm, stride=1, activated=True):
        weights = arrays[f"{name}.weight"]
        k, groups = weights.shape[-1], x.shape[1] // weights.shape[1]
        first = (k - stride) // 2
        last = k - stride - first
        x = F.pad(x, ((0, 0), (0, 0), (first, last), (first, last)), "constant")
        x = F.convolution_2d(x, weights, stride=stride, groups=groups)
        names = "weight", "bias", "running_mean", "running_var"
        parts = (arrays[f"{norm}.{part}"] for part in names)
        x = F.fixed_batch_normalization(x, *parts, eps=1e-3)
        return F.clip(x, 0.0, 6.0) if activated else x

    x = (images.transpose(0, 3, 1, 2).astype(np.float32) - 127) / 128
    x = layer(x, "_conv_stem", "_bn0", 2)
    for i in range(16):
        block, h = f"_blocks.{i}", x
        if i:
            h = layer(h, f"{block}._expand_conv", f"{block}._bn0")
        h = layer(h, f"{block}._depthwise_conv", f"{block}._bn1", 2 if i in (1, 3, 5, 11) else 1)
        h = layer(h, f"{block}._project_conv", f"{block}._bn2", activated=False)
        x = h + x if h.shape == x.shape else h
    return F.mean(layer(x, "_conv_head", "_bn1"), axis=(2, 3)).array


def test_the_network_is_that_of_convolutions_and_batch_normalisation(random_weights):
    images = np.random.default_rng(1).integers(0, 256, (3, 64, 64, 3)).astype(np.uint8)
    found = lite0.Lite0(random_weights, 64)(images)
    expected = with_chainer(random_weights, images)
    assert found.shape == (3, 1280) and expected.std() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not cuda.available, reason="needs a CUDA GPU and CuPy")
def test_features_by_a_device_are_the_cpus(random_weights, monkeypatch):
    direct = cuda.cupy.matmul

    def matmul(a, b):
        try:
            return direct(a, b)
        except cuda.cublas.CUBLASError:  # the emulated device has no batches of pointers
            shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            return direct(*(cuda.cupy.broadcast_to(x, shape + x.shape[-2:]).copy() for x in (a, b)))

    monkeypatch.setattr(cuda.cupy, "matmul", matmul)
    images = np.random.default_rng(1).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    expected = lite0.Lite0(random_weights, 32)(images)
    found = lite0.Lite0(random_weights, 32, cuda.cupy)(images)
    assert isinstance(found, np.ndarray) and expected.std() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@needs_weights
def test_photographs_have_sensible_classes():
    """A temple and a flower of scikit-learn's, by the network's own last layer."""
    sample = pytest.importorskip("sklearn.datasets").load_sample_images().images
    seen = [np.asarray(Image.fromarray(image).resize((224, 224), 2)) for image in sample]
    arrays = lite0.load_weights()
    scores = lite0.Lite0(arrays, 224)(np.stack(seen)) @ arrays["_fc.weight"].T
    temple, flower = np.argsort(-(scores + arrays["_fc.bias"]), axis=1)[:, :5].tolist()
    assert 698 in temple and flower[0] == 985  # palace; daisy


def test_weights_run_no_code(tmp_path):
    class Attack:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    with pytest.raises(pickle.UnpicklingError, match="io.open, expected tensors alone"):
        lite0.read_arrays(pickle.dumps(Attack()) * 5)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("content", [b"another", None])
def test_a_damaged_file_of_weights_is_one_line(content, tmp_path, monkeypatch, capsys):
    path, data = tmp_path / "lite0.pth", make(tmp_path / "set")
    if content:
        path.write_bytes(content)
    monkeypatch.setattr(lite0, "installed", lambda: path)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *BY_FEATURES) == 2
    assert f"{path}: damaged or another file" in one_line(capsys)


def small_blocks(monkeypatch):
    monkeypatch.setattr(image_features, "BATCH", 2)
    monkeypatch.setattr(image_features, "BLOCK", 4)


def test_features_are_in_order_and_computed_once(tmp_path, monkeypatch):
    """Images that cannot be decoded are named together."""
    small_blocks(monkeypatch)
    paths = images_in(tmp_path / "images", 9)
    extractor = image_features.pixels(12)
    found = image_features.compute(paths, extractor)
    seen = [np.asarray(Image.open(path).resize((12, 12), 2)).ravel() for path in paths]
    np.testing.assert_allclose(found, np.array(seen) / 255, atol=1e-6)

    def fail(device):
        raise AssertionError("computed again")

    again = image_features.compute(paths, replace(extractor, load=fail))
    np.testing.assert_array_equal(again, found)
    Image.new("RGB", (5, 5)).save(paths[8])  # another content under the same path
    with pytest.raises(AssertionError):
        image_features.compute(paths, replace(extractor, load=fail))
    for path in paths[1::7]:
        Path(path).write_bytes(b"no image")
    with pytest.raises(
        UserError, match=r"\(2 times\): image 1: content of another kind.* image 8: "
    ):
        image_features.compute(paths, extractor, "cpu", "images", lambda i: f"image {i}")


def test_a_stop_while_features_are_computed_costs_a_block(tmp_path, monkeypatch):
    """The features are the same as without a stop."""
    small_blocks(monkeypatch)
    paths, usual, passes = images_in(tmp_path / "images", 13), image_features.pixels(8), []

    def load(device):
        def one_pass(images):
            if len(passes) == 5:
                passes.append("stopped")
                raise KeyboardInterrupt
            passes.append(len(images))
            return usual.load(device)(images)

        return one_pass

    counted = replace(usual, load=load, threads=False)
    with pytest.raises(KeyboardInterrupt):
        image_features.compute(paths, counted)
    found = image_features.compute(paths, counted)
    assert passes == [2, 2, 2, 2, 2, "stopped", 2, 2, 2]
    np.testing.assert_array_equal(found, image_features.compute(paths, replace(usual, name="x")))


def test_what_works_without_the_package(tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.setattr(lite0, "installed", lambda: None)
    data, out = make(tmp_path / "set"), tmp_path / "out"
    assert run("relabel", data / "labels.csv", "--out", out, *BY_FEATURES, "--dry-run") == 0
    assert "images: pixels (8 x 8); " in capsys.readouterr().out
    assert f"no package {lite0.PACKAGE}" in caplog.text and "pixels alone" in caplog.text
    words = ("--features", "builtin", *BY_FEATURES)
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 2
    assert f"no package {lite0.PACKAGE}; pip install 'chainer_jo[features]'" in one_line(capsys)
    for path in (data / "images").iterdir():
        Image.new("RGB", (65, 20)).save(path)
    assert run("relabel", data / "labels.csv", "--out", out, *BY_FEATURES) == 2
    line = one_line(capsys)
    expected = (lite0.PACKAGE, "65 pixels", "--features FILE", "--features pixels")
    assert all(word in line for word in expected), line


@pytest.mark.parametrize("better", ["builtin", "pixels"])
def test_the_noisy_labels_choose_the_features(better, tmp_path, monkeypatch, capsys):
    """Of noise and pixels the ones that predict the labels; `predict` computes the same."""
    data, out = make(tmp_path / "set"), tmp_path / "out"

    def noise(side):
        def load(device):
            return lambda images: np.random.default_rng(0).normal(size=(len(images), 5))

        return replace(image_features.pixels(side), name="noise", words="noise", load=load)

    worse = {"builtin": "pixels", "pixels": "builtin"}[better]
    both = {worse: noise, better: lambda side: image_features.pixels(8)}
    for name, extractor in both.items():
        monkeypatch.setitem(image_features.EXTRACTORS, name, extractor)
    monkeypatch.setattr(lite0, "load_weights", dict)
    monkeypatch.setattr(lite0, "installed", lambda: tmp_path)
    assert run("relabel", data / "labels.csv", "--out", out, *BY_FEATURES) == 0
    (said,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("features: ")]
    assert said.startswith("features: networks on pixels (8 x 8) agree with ")
    assert said.endswith("more than noise")
    shares = json.loads((out / "results.json").read_text())["choice"]
    assert set(shares) == {"noise", "pixels (8 x 8)"} and shares["noise"] < 0.8
    assert f"{100 * shares['pixels (8 x 8)']:.1f} %" in said
    assert said.removeprefix("features: ") in (out / "report.html").read_text(encoding="utf-8")
    assert content(out / "report.html")["rows"]
    assert network_file.load(out).about["seen"] == {"by": "pixels", "side": 8}
    monkeypatch.undo()
    assert run("predict", out, data / "images") == 0
    found = csv.DictReader(capsys.readouterr().out.splitlines())
    predicted = {row["path"].rpartition("/")[2]: row["label"] for row in found}
    new = {row["path"].rpartition("/")[2]: row["new"] for row in read(out / "labels.csv")}
    assert sum(predicted[name] == label for name, label in new.items()) >= 57


def test_projection_and_scale_are_in_the_networks_first_layer(tmp_path):
    """A network in terms of principal components, and the one that is kept, say the same."""
    rng = np.random.default_rng(0)
    features = rng.normal(3, 2, (200, 300)).astype(np.float32)  # pixels of 10 x 10
    labels = (features[:, 0] > 3).astype(np.int32)
    axes = by_features.Axes.of(features)
    assert axes.directions.shape == (300, 128)
    projected = axes.project(features)
    data = by_features.FeatureSet(projected, labels)
    one_hot, recipe = np.eye(2, dtype=np.float32)[labels], training.Recipe()
    model = training.second_step(data, one_hot, recipe, 0)
    expected = training.predict(model, FeatureInput(projected, *data.normalisation))
    candidate = by_features.Candidate(data, {}, image_features.pixels(10), axes)
    network_file.save(candidate.network(one_hot, ("a", "b"), recipe, 0), tmp_path)
    found = network_file.load(tmp_path).of_features(features)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("network", ["resnet50", pytest.param("builtin", marks=needs_weights)])
def test_features_alone_are_a_file_for_relabel(network, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(image_features, "RESNET50_SIDE", 32)
    monkeypatch.setattr(image_features, "LITE0_SIDE", 32)
    data, file = make(tmp_path / "set"), tmp_path / "f.npz"
    words = ("--out", file, "--device", "cpu")
    if network == "resnet50":
        serializers.save_npz(tmp_path / "w.npz", ResNet50(rng=np.random.RandomState(0)))
        words += ("--resnet50-weights", tmp_path / "w.npz")
    assert run("features", data / "labels.csv", *words) == 0
    assert "60 images" in capsys.readouterr().out
    features = read_features(file, read_sets(str(data / "labels.csv")).train)
    assert features.shape == (60, 2048 if network == "resnet50" else 1280)
    assert run("features", data / "labels.csv", *words) == 2
    assert "expected a new file" in one_line(capsys)
    assert run("features", data / "images", "--out", tmp_path / "more.npz", *words[2:]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "more.npz")["features"], features)
    assert run("features", data / "labels.csv", "--out", tmp_path / "f.csv") == 2
    assert "whose name ends in .npz" in one_line(capsys)
    for name in ("cat", "dog"):  # an image beside class folders has no class, and is left out
        shutil.copytree(data / "images", tmp_path / "classes" / name)
    (tmp_path / "classes/broken.png").write_text("no image")
    assert run("features", tmp_path / "classes", "--out", tmp_path / "c.npz", *words[2:]) == 0
    assert len(np.load(tmp_path / "c.npz")["paths"]) == 120


@pytest.mark.parametrize(("each", "classes"), [(1, 8), (2, 2)])
def test_too_few_images_are_refused_before_features_are_computed(
    each, classes, tmp_path, capsys, monkeypatch
):
    for k in range(classes):
        images_in(tmp_path / "set" / f"class {k}", each)
    monkeypatch.setattr(image_features, "compute", lambda *_: pytest.fail("computed"))
    assert run("relabel", tmp_path / "set", "--out", tmp_path / "out", "--features", "pixels") == 2
    assert f"{each * classes} images" in one_line(capsys)
    assert not (tmp_path / "out").exists()


def test_usual_size(tmp_path):
    """The median of the longer sides of the images that can be opened."""
    for name in "ab":
        images_in(tmp_path / name)
    for i, width in enumerate((40, 31, 32)):
        Image.new("RGB", (width, 20)).save(tmp_path / f"a/{i}.png")
    images = read_sets(str(tmp_path)).train
    assert image_features.usual_size(images) == 9
    for file in images.files()[3:]:
        Path(file).write_bytes(b"no image")
    assert image_features.usual_size(images) == 32
    for file in images.files():
        Path(file).write_bytes(b"no image")
    with pytest.raises(UserError, match="none of 12 images can be opened"):
        image_features.usual_size(images)
