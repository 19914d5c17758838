"""Features of a user's images: what damaged images, damaged caches and too few images lead to."""

from pathlib import Path

import numpy as np
import pytest
from class_folders import images_in
from own_images import one_line, run
from PIL import Image

from chainer_jo.errors import UserError
from chainer_jo.relabel.read import image_features
from chainer_jo.relabel.read.labelled_images import read_sets

pytestmark = pytest.mark.usefixtures("cache")


def flipped(content):
    return content[:-300] + bytes([content[-300] ^ 64]) + content[-299:]


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        lambda content: content.replace(b"(6, 192), }", b"(6, 192(, }"),
        lambda content: content.replace(b"(6, 192), }" + 8 * b" ", b"(6000000, 19200), }"),
        lambda content: content[:700],
        lambda content: b"",
    ],
    ids=["bit", "header", "length", "truncated", "empty"],
)
def test_damaged_features_in_the_cache_are_computed_again(damage, tmp_path, cache):
    paths, extractor = images_in(tmp_path / "images"), image_features.pixels(8)
    before = image_features.compute(paths, extractor)
    (kept,) = cache.glob("features/*")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert kept.read_bytes() != whole
    np.testing.assert_array_equal(image_features.compute(paths, extractor), before)
    np.testing.assert_array_equal(image_features.compute(paths, extractor), before)


def test_images_that_cannot_be_decoded_are_named_with_the_reason(tmp_path, capsys):
    for name in ("cat", "dog"):
        images_in(tmp_path / "set" / name)
    Image.fromarray(np.zeros((9, 9), np.float32)).save(tmp_path / "set/cat/float.tif")
    (tmp_path / "set/dog/text.jpg").write_text("text")
    assert run("relabel", tmp_path / "set", "--out", tmp_path / "out", "--features", "pixels") == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "'cat/float.tif': pixels that are signed, of 32 bits or floating-point" in line
    assert "'dog/text.jpg': content of another kind" in line
    assert "expected a whole JPEG, PNG, WEBP, GIF, BMP or TIFF of 8 or 16 unsigned bits" in line


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
