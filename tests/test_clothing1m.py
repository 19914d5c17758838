"""Clothing1M's layout read and checked; every kind of damage has its own words."""

import codecs
import hashlib
import shutil

import numpy as np
import pytest
from clothing1m_like import CLASSES, SMALL, append, make_clothing1m_like

from chainer_jo.data import clothing1m, clothing1m_standin
from chainer_jo.data.clothing1m import load
from chainer_jo.data.labelled_data import UNKNOWN, as_keys, class_index, digest_keys
from chainer_jo.errors import UserError


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    return make_clothing1m_like(tmp_path_factory.mktemp("data") / "clothing1m")


@pytest.fixture
def folder(whole, tmp_path):
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "clothing1m")


def test_splits_and_labels(whole):
    data = load(whole)
    assert data.class_names == clothing1m.CLASS_NAMES
    for name, split in data.sets.items():
        assert len(split.images) == len(split.labels) == CLASSES * SMALL[name]
    np.testing.assert_array_equal(data.validation.labels, data.validation.true_labels)
    noisy = dict(line.split() for line in (whole / clothing1m.NOISY_LABELS).open())
    assert [noisy[key] for key in data.train.images] == list(map(str, data.train.labels))


def test_labels_are_confused_in_pairs_only():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(CLASSES), 1000))
    noisy = clothing1m_standin.noisy_labels(labels, 0.6154, rng)
    assert np.mean(noisy == labels) == pytest.approx(0.615)
    names = clothing1m.CLASS_NAMES
    seen = {frozenset((names[a], names[b])) for a, b in zip(labels, noisy, strict=True) if a != b}
    assert seen == set(map(frozenset, clothing1m_standin.CONFUSED))
    assert frozenset(("Knitwear", "Sweater")) in seen


def test_the_stand_in_is_reproducible(whole, tmp_path):
    again = make_clothing1m_like(tmp_path / "again")
    for path in whole.rglob("*.*"):
        assert path.read_bytes() == (again / path.relative_to(whole)).read_bytes(), path


def test_a_part_does_not_pass_for_the_whole_and_byte_order_marks_do_not_count(whole, folder):
    folder = folder.rename(folder.with_name("mine"))
    for path in folder.glob("*.txt"):
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    found, expected = load(folder), load(whole)
    assert (found.name, expected.name) == ("mine", "clothing1m-part")
    assert found.fingerprint() == expected.fingerprint()
    assert found.class_names == expected.class_names


def test_training_image_without_a_true_label(folder):
    labels = folder / clothing1m.CLEAN_LABELS
    key = load(folder).train.images[0]
    kept = [line for line in labels.read_text().splitlines() if not line.startswith(key)]
    labels.write_text("\n".join(kept))
    truth = load(folder).train.true_labels
    assert truth[0] == UNKNOWN and (truth[1:] != UNKNOWN).all()


@pytest.mark.parametrize("name, change, words", [
    ("CLEAN_LABELS", None, "file missing: clean_label_kv.txt"),
    ("CLEAN_VALIDATION", lambda text: "\n", "file empty: clean_val_key_list.txt"),
    ("NOISY_TRAIN", "images/0/00001.jpg",
     "noisy_train_key_list.txt: duplicate key: 'images/0/00001.jpg'"),
    ("NOISY_LABELS", "images/0/00001.jpg 3",
     "noisy_label_kv.txt: duplicate key: 'images/0/00001.jpg'"),
    ("NOISY_LABELS", "images/0/x.jpg 14",
     "noisy_label_kv.txt: not 'key label' with a label from 0 to 13: line 141, 'images/0/x"),
    ("CLEAN_LABELS", "images/0/x.jpg Dress",
     "clean_label_kv.txt: not 'key label' with a label from 0 to 13: line 141, 'images/0/x.jpg D"),
    ("CLEAN_TEST", "images/3/none.jpg",
     "clean_test_key_list.txt: key without a label in clean_label_kv.txt: 'images/3/none.jpg'"),
    ("CLEAN_TEST", "images/0/00002.jpg",
     "key both in noisy_train_key_list.txt and in clean_test_key_list.txt"),
    ("CLEAN_TEST", "../secret.jpg",
     "clean_test_key_list.txt: key is not a path inside the folder: '../secret.jpg'"),
    ("CLEAN_TEST", "images//0/00002.jpg",  # another spelling of a training image
     "clean_test_key_list.txt: key is not a path inside the folder: 'images//0/00002.jpg'"),
    ("CATEGORY_FILE", lambda text: "T-shirt\nShirt\n",
     "category_names_eng.txt: 2 classes, expected 14"),
    ("CATEGORY_FILE", lambda text: "Shirt\n" * 14,
     "category_names_eng.txt: a class is named twice"),
    (None, None, "file missing (7 times): category_names_eng.txt"),
])  # fmt: skip
def test_damage_is_one_problem_in_one_line(name, change, words, folder):
    """A missing file or folder, another content, or one more line."""
    path = folder / getattr(clothing1m, name) if name else folder
    if callable(change):
        path.write_text(change(path.read_text()))
    elif change:
        append(path, f"{change}\n")
    else:
        path.unlink() if name else shutil.rmtree(path)
    with pytest.raises(UserError) as error:
        load(folder)
    message = str(error.value)
    assert str(folder) in message and "\n" not in message
    assert words in message and ";" not in message


def test_all_damage_is_reported_at_once_and_briefly(folder):
    append(folder / clothing1m.NOISY_TRAIN, "images/0/00001.jpg\n" * 1000)
    (folder / clothing1m.CLEAN_TEST).unlink()
    append(folder / clothing1m.CLEAN_LABELS, "images/0/x.jpg 99\n")
    with pytest.raises(UserError) as error:
        load(folder)
    message = str(error.value)
    assert "duplicate key (1000 times)" in message
    assert "file missing" in message and "99" in message
    assert len(message) < 600


def test_keys_of_any_length():
    keys = as_keys(["a/1.jpg", "", "long/2.jpg", "\u00e9"])
    assert list(keys) == ["a/1.jpg", "", "long/2.jpg", "\u00e9"]
    digest = hashlib.sha256()
    digest_keys(keys, digest)  # into which fingerprints of finished runs go
    ends = np.array([7, 7, 17, 19], np.int64)
    expected = "a/1.jpglong/2.jpg\u00e9".encode() + ends.tobytes()
    assert digest.digest() == hashlib.sha256(expected).digest()


def test_class_names_are_matched_loosely():
    for name in ("T-shirt", "T-Shirt", "tshirt"):
        assert class_index(name, clothing1m.CLASS_NAMES) == 0
    assert class_index("DownCoat", clothing1m.CLASS_NAMES) == 8
    with pytest.raises(UserError, match="class 'Hat': expected one of T-shirt, Shirt"):
        class_index("Hat", clothing1m.CLASS_NAMES)
