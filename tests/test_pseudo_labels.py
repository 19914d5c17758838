import itertools
from dataclasses import replace

import chainer
import numpy as np
import pytest
from PIL import Image

from chainer_jo.data import digits
from chainer_jo.data.labelled_data import clean_data
from chainer_jo.errors import UserError
from chainer_jo.method import resnet50_features
from chainer_jo.method.label_sources import LabelFiles
from chainer_jo.method.pseudo_labels import name_clusters, pseudo_labels, read_features
from chainer_jo.method.resnet50 import VARIANTS, ResNet50
from chainer_jo.method.resnet50_features import pool5_features, prepare
from chainer_jo.reproduction.experiments.presets import DIGITS, Study
from chainer_jo.reproduction.running.store import RunStore


def data_set(labels, name="cifar10"):
    """Random 8 x 8 RGB images with these training labels."""
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(len(labels), 8, 8, 3), dtype=np.uint8)
    classes = tuple(f"class {i}" for i in range(max(labels) + 1))
    return clean_data(
        name, images, np.asarray(labels, np.int32), images[:1], np.zeros(1, np.int32), classes
    )


def blobs(labels, spread):
    """Features (n, 4) around one far point per class."""
    rng = np.random.default_rng(1)
    centres = 10 * np.eye(max(labels) + 1, 4)
    return (centres[labels] + spread * rng.normal(size=(len(labels), 4))).astype(np.float32)


def test_clusters_are_named_by_the_best_of_all_matchings():
    rng = np.random.default_rng(3)
    clusters, true = rng.integers(5, size=(2, 60))
    best = max(
        (np.array(names)[clusters] == true).mean() for names in itertools.permutations(range(5))
    )
    labels = name_clusters(clusters, true, 5)
    assert labels.dtype == np.int32
    assert (labels == true).mean() == best
    assert len({(c, y) for c, y in zip(clusters, labels, strict=True)}) == 5


def test_separate_classes_are_found_and_labels_follow_from_the_seed():
    true = [0, 1, 2, 3] * 20
    labels = pseudo_labels(data_set(true), blobs(true, 0.1), np.random.SeedSequence(0))
    np.testing.assert_array_equal(labels, true)
    first, again = (
        pseudo_labels(data_set(true), blobs(true, 6.0), np.random.SeedSequence(5)) for _ in range(2)
    )
    assert 0.25 < np.mean(first == np.array(true)) < 1
    np.testing.assert_array_equal(first, again)


def test_a_file_of_features_goes_class_by_class(tmp_path):
    true = [2, 0, 1, 0, 2]
    rows = np.arange(5, dtype=np.float16)[:, None]
    np.savez(tmp_path / "features.npz", features=rows)
    features = read_features(tmp_path / "features.npz", data_set(true))
    # The images of class 0 are numbers 1 and 3, of class 1 number 2, of class 2 numbers 0 and 4.
    np.testing.assert_array_equal(features[[1, 3, 2, 0, 4]], rows)
    assert features.dtype == np.float32


@pytest.mark.parametrize("arrays, words", [
    ({"features": np.zeros((3, 2))}, "expected 2 rows"),
    ({"features": np.zeros(2)}, "expected 2 rows"),
    ({"features": np.zeros((2, 0))}, "expected 2 rows"),
    ({"features": np.full((2, 2), np.nan)}, "finite"),
    ({"other": np.zeros((2, 2))}, "array 'features'"),
    ({"features": np.zeros((2, 2)), "paths": np.array(["b", "a"])}, "class by class"),
])  # fmt: skip
def test_files_that_do_not_fit_are_refused(arrays, words, tmp_path):
    """Archives of something else: test_arrays_of_others.py."""
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(UserError, match=words):
        read_features(tmp_path / "f.npz", data_set([0, 1]))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """An .npz of a random ResNet-50."""
    path = tmp_path_factory.mktemp("weights") / "resnet50.npz"
    network = ResNet50(rng=np.random.RandomState(0))
    chainer.serializers.save_npz(path, network, compression=False)
    return path


@pytest.mark.parametrize("variant, order, mean, std", [
    ("original", [2, 1, 0], [103.063, 115.903, 123.152], 1),
    ("torchvision", [0, 1, 2], [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]),
])  # fmt: skip
def test_preparation_is_that_of_the_weights_and_resizes_as_pillow(variant, order, mean, std):
    image = data_set([0]).train.images
    x = prepare(image, VARIANTS[variant], size=32)
    resized = np.asarray(Image.fromarray(image[0]).resize((32, 32), Image.Resampling.BILINEAR))
    expected = (resized[..., order] - np.array(mean)) / std
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, expected.transpose(2, 0, 1)[None], rtol=1e-5, atol=1e-5)


def test_an_interrupted_extraction_of_features_goes_on(weights, cache, monkeypatch):
    monkeypatch.setattr(resnet50_features, "BATCH", 2)
    monkeypatch.setattr(resnet50_features, "BLOCK", 4)
    images = data_set([0, 1, 2, 3, 0, 1, 2]).train.images
    extracted = []
    extract = resnet50_features._extract

    def stopping_in_the_second_block(network, images, start, *rest):
        extracted.append(start)
        if extracted == [0, 4]:
            raise KeyboardInterrupt
        return extract(network, images, start, *rest)

    monkeypatch.setattr(resnet50_features, "_extract", stopping_in_the_second_block)
    with pytest.raises(KeyboardInterrupt):
        pool5_features(images, weights, size=32)
    features = pool5_features(images, weights, size=32)
    assert extracted == [0, 4, 4]
    np.testing.assert_array_equal(pool5_features(images, weights, size=32), features)
    assert extracted == [0, 4, 4] and not list(cache.rglob("*.tmp"))
    expected = resnet50_features.pool5(ResNet50(rng=np.random.RandomState(0)), images, 32)
    assert features.shape == (7, 2048) and features.dtype == np.float32
    np.testing.assert_allclose(features, expected, atol=1e-4 * expected.max())
    # Other images are another extraction.
    pool5_features(255 - images[:1], weights, size=32)
    assert extracted[3:] == [0]


def test_a_cache_in_the_way_grey_images_and_missing_weights_are_refused(weights, cache):
    cache.parent.mkdir()
    cache.write_text("in the way")
    for images, file, words in (
        (data_set([0]).train.images, weights, "CHAINER_DATASET_ROOT"),
        (digits.load().train.images[:2], weights, r"expected uint8 \(n, h, w, 3\)"),
        (data_set([0]).train.images, "missing.npz", "no such file"),
    ):
        with pytest.raises(UserError, match=words):
            pool5_features(images, file, size=32)


def run_with(given, data="cifar10"):
    """A run on pseudo labels of these features."""
    study = Study(DIGITS, data, features=given.features_of(data))
    return study.baseline("cross_entropy", "pseudo", 0.0, 0)


def labels_of(given, data, noise, results, seed=0):
    """Pseudo labels of all training images."""
    given, every = replace(given, results=results), np.arange(len(data.train))
    return noise.source.labels(data, every, noise, seed, given)


def features_in(path, values):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, features=values)
    return LabelFiles(features=str(path))


def test_files_of_features_or_weights_of_other_content_are_other_runs(tmp_path):
    true = [0, 1, 2, 3] * 20
    good = features_in(tmp_path / "a" / "features.npz", blobs(sorted(true), 0.1))
    bad = features_in(tmp_path / "b" / "features.npz", blobs(sorted(true), 50.0))
    runs = [run_with(good), run_with(bad)]
    assert runs[0].id != runs[1].id
    right = [
        np.mean(labels_of(given, data_set(true), run.noise, tmp_path / "results") == true)
        for given, run in zip((good, bad), runs, strict=True)
    ]
    assert right[0] == 1 and right[1] < 0.6
    of_weights = [run_with(LabelFiles(weights=given.features)) for given in (good, bad)]
    assert of_weights[0].id != of_weights[1].id
    assert of_weights[0].noise.features.startswith("resnet50-features-")


def test_labels_are_clustered_once(tmp_path):
    true = [0, 1, 2, 3] * 5
    given = features_in(tmp_path / "a" / "features.npz", blobs(true, 0.1))
    noise = run_with(given).noise
    features_in(tmp_path / "a" / "features.npz", blobs(true, 3.0))  # written again meanwhile
    with pytest.raises(UserError, match=f"expected {noise.features}.*written again"):
        labels_of(given, data_set(true), noise, tmp_path / "results")
    assert not (tmp_path / "results").exists()
    features_in(tmp_path / "a" / "features.npz", blobs(true, 0.1))
    first = labels_of(given, data_set(true), noise, tmp_path / "results")
    (tmp_path / "a" / "features.npz").unlink()
    again = labels_of(given, data_set(true), noise, tmp_path / "results")
    np.testing.assert_array_equal(first, again)
    (kept,) = (tmp_path / "results" / "pseudo_labels").iterdir()
    whole = kept.read_bytes()

    def refused(why, *, seed=0, data=true):
        said = (
            rf"-{seed}.npz: damaged .*{why}.*; expected it as written; remove it, the features are"
        )
        with pytest.raises(UserError, match=said):
            labels_of(given, data_set(data), noise, tmp_path / "results", seed)

    kept.write_bytes(whole[:200])
    refused("")
    kept.write_bytes(whole)
    refused("of .*, not of", data=[1, 0, 2, 3] * 5)
    kept.rename(kept.with_name(kept.name.replace("-0.npz", "-1.npz")))
    refused("of .*-0 .*, not of .*-1 ", seed=1)


def test_fresh_runs_cluster_afresh(tmp_path):
    """Other code may give other clusters. Digits are clustered by their pixels."""
    with pytest.raises(UserError, match="--resnet50-weights FILE.*--features FILE.npz"):
        run_with(LabelFiles())
    run, data = run_with(LabelFiles(), "digits"), digits.load()
    assert run.id == "cross-entropy-pl-s0-b49dc7635b", "without a file a run keeps its id"
    kept = tmp_path / "pseudo_labels" / f"{run.noise.features}-{run.seed}.npz"
    labels = labels_of(LabelFiles(), data, run.noise, tmp_path)
    assert kept.exists() and 0.6 < np.mean(labels == data.train.labels) < 0.95
    RunStore(tmp_path).delete(run)
    assert not kept.exists()
