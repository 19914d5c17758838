"""Features of people's own images, joined by the images' paths."""

import unicodedata
from dataclasses import replace

import numpy as np
import pytest

from chainer_jo.errors import UserError
from chainer_jo.relabel.read.feature_table import read_features
from chainer_jo.relabel.read.labelled_images import read_sets

PATHS = ["a é.png", "b/b.png", "c.png"]
ROWS = np.arange(6, dtype=np.float64).reshape(3, 2)


@pytest.fixture
def images(tmp_path):
    for path in PATHS:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    lines = "\n".join(f"{path},{label}" for path, label in zip(PATHS, "xyx", strict=True))
    (tmp_path / "labels.csv").write_text(f"path,label\n{lines}\n", encoding="utf-8")
    return read_sets(str(tmp_path / "labels.csv")).train


@pytest.fixture
def file(tmp_path):
    return tmp_path / "features.npz"


def test_rows_in_any_order_with_others_between(images, file):
    paths = ["other.png", "c.png", "./b/b.png", str(file.parent / PATHS[0]), "another.png"]
    features = np.stack([ROWS[0] + np.nan, ROWS[2], ROWS[1], ROWS[0], ROWS[0]])
    np.savez(file, features=features, paths=paths)
    found = read_features(file, images)
    assert found.dtype == np.float64 and found.flags.c_contiguous
    np.testing.assert_array_equal(found, ROWS)


def test_paths_as_bytes_and_integers_as_features(images, file):
    np.savez(file, features=ROWS.astype(np.int8), paths=np.array([p.encode() for p in PATHS]))
    np.testing.assert_array_equal(read_features(file, images), ROWS)


def test_an_accent_is_the_same_however_it_is_encoded(images, file):
    paths = [unicodedata.normalize(form, PATHS[0]) for form in ("NFC", "NFD")]
    assert paths[0] != paths[1]
    for path in paths:
        np.savez(file, features=ROWS, paths=[path, *PATHS[1:]])
        np.testing.assert_array_equal(read_features(file, images), ROWS)


def test_an_array_alone_is_in_the_order_of_the_table(images, file):
    alone = file.with_suffix(".npy")
    np.save(alone, ROWS)
    np.testing.assert_array_equal(read_features(alone, images), ROWS)
    with pytest.raises(UserError, match="an .npy has no paths"):
        read_features(alone, replace(images, lines=[]))
    for array, words in (
        (ROWS[:2], r"float64 \(2, 2\), expected numbers \(3 images"),
        (ROWS[0], r"float64 \(2,\), expected"),
        (ROWS.astype("longdouble"), "float.*, expected numbers"),
    ):
        np.save(alone, array)
        with pytest.raises(UserError, match=words):
            read_features(alone, images)
    alone.write_bytes(b"nothing")
    with pytest.raises(UserError, match="features.npy.*expected an array"):
        read_features(alone, images)


def test_a_row_far_from_all_others_is_noted(images, file, caplog):
    rows = 1 + ROWS.astype(np.float32)
    np.savez(file, features=rows * 1e10, paths=PATHS)
    read_features(file, images)
    assert not caplog.messages
    rows[1] *= 1000
    for features, noted in ((rows, True), (rows * [[0], [1], [0]], False)):
        np.savez(file, features=features, paths=PATHS)
        caplog.clear()
        read_features(file, images)
        assert len(caplog.messages) == noted
        if noted:
            assert caplog.messages[0].endswith(
                "features.npz': numbers more than 100 times as large as usual: 'b/b.png' (line 3)"
            )


DAMAGE = {
    "no paths": (dict(features=ROWS), "no array 'paths', expected"),
    "no features": (dict(paths=PATHS), "features"),
    "objects": (dict(features=ROWS, paths=np.array(PATHS, object)), "text and no objects"),
    "numbers as paths": (dict(features=ROWS, paths=[1, 2, 3]), "as many texts"),
    "too few paths": (dict(features=ROWS, paths=PATHS[:2]), r"'paths' <U7 \(2,\)"),
    "one dimension": (dict(features=ROWS[:, 0], paths=PATHS), r"float64 \(3,\)"),
    "no dimensions": (dict(features=ROWS[:, :0], paths=PATHS), "one dimension or more"),
    "text as features": (dict(features=ROWS.astype(str), paths=PATHS), "expected numbers"),
    "a path twice": (dict(features=ROWS, paths=["c.png", "x", "./c.png"]), "rows 0 and 2 are both"),
    "images without a row": (
        dict(features=ROWS, paths=["x/c.png", "x/b/b.png", "a é.png"]),
        r"no row for an image of .* \(2 times\): 'b/b.png' \(line 3\), 'c.png' \(line 4\); its "
        "paths are such as 'x/c.png'",
    ),
    "no rows": (dict(features=ROWS[:0], paths=np.array([], str)), r"no row .*\(3 times\)"),
    "not finite": (
        dict(features=np.where(ROWS > 4, np.inf, ROWS), paths=PATHS),
        "not finite, or beyond 1e.14: 'c.png' .line 4.",
    ),
    "too large": (dict(features=ROWS * 1e200, paths=PATHS), r"beyond 1e\+14 \(3 times\)"),
    "all the same": (dict(features=ROWS * 0 + 1, paths=PATHS), "every image has the same numbers"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_in_one_line(kind, images, file):
    arrays, words = DAMAGE[kind]
    np.savez(file, **arrays)
    with pytest.raises(UserError, match=words) as caught:
        read_features(file, images)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(images, file):
    with pytest.raises(UserError, match="features.npz.*No such file"):
        read_features(file, images)
