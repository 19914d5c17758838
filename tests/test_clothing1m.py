"""Clothing1M's layout read and checked; every kind of damage has its own words."""

import codecs
import hashlib
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from clothing1m_like import CLASSES, SMALL, append, make_clothing1m_like
from processes import alive, finish, start, wait_until

from chainer_jo.data import clothing1m, clothing1m_standin
from chainer_jo.data.check_clothing1m import check, main
from chainer_jo.data.clothing1m import load, parse
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import UNKNOWN, ImageFiles, as_keys, class_index, digest_keys
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
    lists = parse(whole, Problems())
    assert list(lists.sizes.values()) == [CLASSES * n for n in SMALL.values()]
    for split in (data.train, data.validation, data.test):
        assert split.labels.dtype == np.int32
        assert len(split.images) == len(split.labels)
    np.testing.assert_array_equal(data.validation.labels, data.validation.true_labels)
    noisy = dict(line.split() for line in (whole / clothing1m.NOISY_LABELS).open())
    assert [noisy[key] for key in data.train.images.keys] == list(map(str, data.train.labels))


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


def test_a_part_does_not_pass_for_the_whole(tmp_path):
    names = [load(make_clothing1m_like(tmp_path / name)).name for name in ("mine", "clothing1m")]
    assert names == ["mine", "clothing1m-part"]


LAYOUT = (
    clothing1m.CATEGORY_FILE, clothing1m.NOISY_LABELS, clothing1m.CLEAN_LABELS,
    *clothing1m.KEY_LISTS,
)  # fmt: skip


@pytest.mark.parametrize("name", LAYOUT)
def test_a_byte_order_mark_does_not_count(folder, whole, name):
    (folder / name).write_bytes(codecs.BOM_UTF8 + (folder / name).read_bytes())
    found, expected = load(folder), load(whole)
    assert found.class_names == expected.class_names
    assert list(found.train.images.keys) == list(expected.train.images.keys)


def test_training_image_without_a_true_label(folder):
    labels = folder / clothing1m.CLEAN_LABELS
    key = load(folder).train.images.keys[0]
    kept = [line for line in labels.read_text().splitlines() if not line.startswith(key)]
    labels.write_text("\n".join(kept))
    truth = load(folder).train.true_labels
    assert truth[0] == UNKNOWN and (truth[1:] != UNKNOWN).all()


def without(name):
    return lambda folder: (folder / name).unlink()


def of_text(name, text):
    return lambda folder: (folder / name).write_text(text)


def more(name, line):
    return lambda folder: append(folder / name, f"{line}\n")


@pytest.mark.parametrize("damage, words", [
    (without(clothing1m.CLEAN_LABELS), "file missing: clean_label_kv.txt"),
    (of_text(clothing1m.CLEAN_VALIDATION, "\n"), "file empty: clean_val_key_list.txt"),
    (more(clothing1m.NOISY_TRAIN, "images/0/00001.jpg"),
     "noisy_train_key_list.txt: duplicate key: 'images/0/00001.jpg'"),
    (more(clothing1m.NOISY_LABELS, "images/0/00001.jpg 3"),
     "noisy_label_kv.txt: duplicate key: 'images/0/00001.jpg'"),
    (more(clothing1m.NOISY_LABELS, "images/0/x.jpg 14"),
     "noisy_label_kv.txt: not 'key label' with a label from 0 to 13: line 141, 'images/0/x"),
    (more(clothing1m.CLEAN_LABELS, "images/0/x.jpg Dress"),
     "clean_label_kv.txt: not 'key label' with a label from 0 to 13: line 141, 'images/0/x.jpg D"),
    (more(clothing1m.CLEAN_TEST, "images/3/none.jpg"),
     "clean_test_key_list.txt: key without a label in clean_label_kv.txt: 'images/3/none.jpg'"),
    (more(clothing1m.CLEAN_TEST, "images/0/00002.jpg"),
     "key both in noisy_train_key_list.txt and in clean_test_key_list.txt"),
    (more(clothing1m.CLEAN_TEST, "../secret.jpg"),
     "clean_test_key_list.txt: key is not a path inside the folder: '../secret.jpg'"),
    (of_text(clothing1m.CATEGORY_FILE, "T-shirt\nShirt\n"),
     "category_names_eng.txt: 2 classes, expected 14"),
    (of_text(clothing1m.CATEGORY_FILE, "Shirt\n" * 14),
     "category_names_eng.txt: a class is named twice"),
    (shutil.rmtree, "file missing (7 times): category_names_eng.txt"),
])  # fmt: skip
def test_damage_is_one_problem_in_one_line(damage, words, folder):
    damage(folder)
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


def test_images_and_lists_are_reported_together(folder):
    keys = load(folder).train.images.keys
    (folder / keys[0]).unlink()
    (folder / keys[1]).write_bytes(b"no image")
    picture = (folder / keys[2]).read_bytes()
    (folder / keys[2]).write_bytes(picture[: len(picture) // 2])
    append(folder / clothing1m.CLEAN_TEST, "images/3/none.jpg\n")
    with pytest.raises(UserError) as error:
        check(folder, processes=1)
    message = str(error.value)
    assert f"image missing (2 times): '{keys[0]}', 'images/3/none.jpg'" in message
    assert f"image cannot be decoded (2 times): '{keys[1]}', '{keys[2]}'" in message
    assert "key without a label" in message


def test_a_sound_folder_is_checked_from_the_command_line(whole, capsys):
    main([str(whole), "--processes", "2"])  # a subset is sound
    said = capsys.readouterr()
    assert "56 noisy_train_key_list.txt" in said.out
    assert "note: noisy_train_key_list.txt: 56 keys, published are about 1000000" in said.err
    with pytest.raises(SystemExit) as end:
        main([str(whole), "--processes", "0"])
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: --processes 0: expected at least 1\n"


SLOW = """
import pathlib, time
from chainer_jo.data import check_clothing1m

open_resized = check_clothing1m.open_resized

def slowly(*arguments):
    pathlib.Path("begun").touch()
    time.sleep(0.05)
    return open_resized(*arguments)

check_clothing1m.open_resized = slowly
if __name__ == "__main__":
    check_clothing1m.main()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_check_can_be_ended(how, whole, tmp_path):
    """From the keyboard, which all its processes hear, or by itself alone: no other goes on."""
    (tmp_path / "slow.py").write_text(SLOW)
    command = [tmp_path / "slow.py", whole, "--processes", "2"]
    script = start(command, start_new_session=True, cwd=tmp_path)
    wait_until((tmp_path / "begun").exists)
    if how == signal.SIGINT:
        os.killpg(script.pid, how)
    else:
        script.send_signal(how)
    try:
        # Until the last process has closed its standard error.
        said = finish(script, 130 if how == signal.SIGINT else -how).stderr
        assert said == "" or how != signal.SIGINT
        wait_until(lambda: not alive(script.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)


def test_keys_of_any_length():
    keys = as_keys(["a/1.jpg", "", "long/2.jpg", "\u00e9"])
    assert list(keys) == ["a/1.jpg", "", "long/2.jpg", "\u00e9"]
    files = ImageFiles(Path("root"), keys)
    assert files[np.array([2, 0])].paths([0, 1]) == ["root/long/2.jpg", "root/a/1.jpg"]
    assert len(files[np.array([], int)]) == 0
    digest = hashlib.sha256()
    digest_keys(keys, digest)  # into which fingerprints of finished runs go
    ends = np.array([7, 7, 17, 19], np.int64)
    expected = "a/1.jpglong/2.jpg\u00e9".encode() + ends.tobytes()
    assert digest.digest() == hashlib.sha256(expected).digest()


@pytest.mark.parametrize("name", ["T-shirt", "T-Shirt", "tshirt"])
def test_class_names_are_matched_loosely(name):
    assert class_index(name, clothing1m.CLASS_NAMES) == 0
    assert class_index("DownCoat", clothing1m.CLASS_NAMES) == 8
    with pytest.raises(UserError, match="class 'Hat': expected one of T-shirt, Shirt"):
        class_index("Hat", clothing1m.CLASS_NAMES)
