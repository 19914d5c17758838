"""Image files of all sizes as one array, decoded once."""

import numpy as np
import pytest
from PIL import Image

from chainer_jo.data import decoding
from chainer_jo.errors import UserError
from chainer_jo.relabel.read import own_data
from chainer_jo.relabel.read.labelled_images import read_sets
from chainer_jo.relabel.read.own_data import check, decoded, usual_size

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def table(tmp_path):
    """Twelve images of twelve sizes and five modes, by a table."""
    rng = np.random.default_rng(0)
    rows = ["path,label"]
    for i, mode in zip(range(12), ("RGB", "L", "RGBA", "P", "1") * 3, strict=False):
        pixels = rng.integers(256, size=(20 + i, 40 - i, 3), dtype=np.uint8)
        Image.fromarray(pixels).convert(mode).save(tmp_path / f"{i}.png")
        rows.append(f"{i}.png,{'ab'[i % 2]}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    return tmp_path / "labels.csv"


def folders(cache):
    return [path for path in cache.glob("*") if path.is_dir()]


def test_all_images_in_order(table, monkeypatch):
    monkeypatch.setattr(own_data, "CHUNK", 5)
    images = read_sets(str(table)).train
    array = decoded(images, 16)
    assert array.shape == (12, 16, 16, 3) and array.dtype == np.uint8
    expected = [decoding.decode(file, 16, 16) for file in images.files()]
    np.testing.assert_array_equal(array, expected)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_decoded_once_whatever_the_labels(table, cache, monkeypatch):
    first = decoded(read_sets(str(table)).train, 16)
    monkeypatch.setattr(decoding, "read", lambda *_: pytest.fail("decoded again"))
    table.write_text(table.read_text().replace("0.png,a", "0.png,b"))
    again = decoded(read_sets(str(table)).train, 16)
    np.testing.assert_array_equal(first, again)
    assert isinstance(again.base, np.memmap)


def test_images_that_changed_and_other_sizes_are_decoded_anew(table):
    before = decoded(read_sets(str(table)).train, 16).copy()
    Image.new("RGB", (9, 9), "red").save(table.parent / "3.png")
    after = decoded(read_sets(str(table)).train, 16)
    assert (after[3] == [255, 0, 0]).all()
    np.testing.assert_array_equal(after[:3], before[:3])
    assert decoded(read_sets(str(table)).train, 8).shape == (12, 8, 8, 3)


def test_all_images_that_cannot_be_decoded_are_named(table, cache):
    (table.parent / "2.png").write_bytes(b"no image")
    content = (table.parent / "7.png").read_bytes()
    (table.parent / "7.png").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError) as caught:
        decoded(read_sets(str(table)).train, 16)
    assert str(caught.value) == (
        f"data {str(table)!r}: image cannot be decoded, {decoding.EXPECTED} (2 times): "
        "'2.png' (line 4): content of another kind, '7.png' (line 9): image file is truncated"
    )
    assert folders(cache) == []


def test_images_are_looked_at_once(table, cache, monkeypatch):
    """What stays on disk, photographs for one."""
    damaged = table.parent / "2.png"
    before = damaged.read_bytes()
    damaged.write_bytes(before[: len(before) // 2])
    with pytest.raises(UserError, match="cannot be decoded.*: '2.png' .line 4."):
        check(read_sets(str(table)).train, 16)
    assert folders(cache) == []
    damaged.write_bytes(before)
    check(read_sets(str(table)).train, 16)
    monkeypatch.setattr(decoding, "read", lambda *_: pytest.fail("decoded again"))
    check(read_sets(str(table)).train, 16)


def test_usual_size(table):
    images = read_sets(str(table)).train
    longer = [max(Image.open(file).size) for file in images.files()]
    assert usual_size(images) == int(np.median(longer))
    (table.parent / "0.png").write_bytes(b"no image")
    assert 30 < usual_size(images) < 40
    for file in images.files():
        with open(file, "wb") as damaged:
            damaged.write(b"no image")
    with pytest.raises(UserError, match="none of 12 images can be opened"):
        usual_size(images)
