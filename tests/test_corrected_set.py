"""A data set with corrected labels: links or copies, the source as it was."""

import csv
import os
import shutil
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate.label_errors import LabelErrors
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.read.label_table import USUAL, TableForm
from chainer_jo.relabel.read.labelled_images import read_sets
from chainer_jo.relabel.write import corrected_set

pytestmark = pytest.mark.usefixtures("cache")


CAFE = unicodedata.normalize("NFD", "café")


def save(root, *names):
    """An image for each name, all different."""
    for i, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (10 * i, 0, 0)).save(root / name)
    return root


@pytest.fixture
def source(tmp_path):
    """Both classes have an image of one name, and there is a class called as a part is."""
    names = "cat/1.png", "cat/in/2.png", "dog/1.png", "train/1.png", "dog/1 (cat).png"
    return save(tmp_path / "pets", *(f"train/{name}" for name in names), "test/dog/9.png")


def labels(sets, **new):
    """One-hot, the labels as given but for those paths."""
    images = sets.train
    classes = images.given.copy()
    for i, path in enumerate(images.paths):
        if path in new:
            classes[i] = images.class_names.index(new[path])
    sure = np.eye(len(images.class_names))
    wrong = classes != images.given
    errors = LabelErrors(
        images.class_names, images.given, sure[classes], sure[classes], wrong, sure
    )
    return CorrectedLabels(images, errors)


def below(folder):
    return sorted(
        os.path.relpath(os.path.join(where, name), folder)
        for where, _, names in os.walk(folder)
        for name in names
    )


@pytest.mark.parametrize("copy, links", [(False, True), (True, True), (False, False)])
def test_class_folders_with_parts(source, tmp_path, monkeypatch, copy, links):
    """Also where the file system has no links, as on a stick."""
    if not links:
        monkeypatch.setattr(os, "symlink", lambda *names: os.stat(tmp_path / "nothing"))
    sets = read_sets(str(source))
    changed = {"train/cat/1.png": "dog", "train/train/1.png": "dog", "train/dog/1.png": "cat"}
    before = {name: (source / name).read_bytes() for name in below(source)}
    corrected_set.write(labels(sets, **changed), sets, tmp_path / "new", copy)
    assert {name: (source / name).read_bytes() for name in below(source)} == before
    moved = {
        "train/cat/1.png": "train/dog/1 (cat 2).png",
        "train/dog/1.png": "train/cat/1 (dog).png",
        "train/train/1.png": "train/dog/1 (train).png",
    }
    assert below(tmp_path / "new") == sorted(moved.get(name, name) for name in before)
    for name, content in before.items():
        target = tmp_path / "new" / moved.get(name, name)
        assert target.read_bytes() == content and target.is_symlink() == (links and not copy)
    assert len(read_sets(str(tmp_path / "new")).train) == 5


@pytest.mark.parametrize("use", ["validation", "test"])
def test_a_part_whose_place_another_set_takes_is_there_nevertheless(source, tmp_path, use):
    shutil.copytree(source / "test", source / "val")
    shutil.copytree(source / "test", tmp_path / "others")
    sets = read_sets(str(source), **{use: str(tmp_path / "others")})
    corrected_set.write(labels(sets), sets, tmp_path / "new", False)
    assert {"test/dog/9.png", "val/dog/9.png"} < set(below(source)) == set(below(tmp_path / "new"))


@pytest.mark.parametrize("names, moved, to, expected", [
    # However an accent is encoded: an image that comes to a class lies beside those there.
    ([f"{CAFE}/1.png", "tea/2.png", "tea/3.png"], "tea/2.png", "café",
     [f"{CAFE}/1.png", f"{CAFE}/2.png", "tea/3.png"]),
    # Names that differ in case alone, which would be one on a stick.
    (["cat/IMG 1.png", "cat/2.png", "dog/img 1.png"], "cat/IMG 1.png", "dog",
     ["cat/2.png", "dog/IMG 1 (cat).png", "dog/img 1.png"]),
])  # fmt: skip
def test_names_of_folders_and_images_do_not_meet(names, moved, to, expected, tmp_path):
    save(tmp_path / "set", *names)
    sets = read_sets(str(tmp_path / "set"))
    corrected_set.write(labels(sets, **{moved: to}), sets, tmp_path / "new", False)
    assert below(tmp_path / "new") == expected


def test_a_name_that_would_be_too_long_is_cut(tmp_path):
    long = "é" * 125 + ".png"  # 254 bytes
    save(tmp_path / "set", f"cat/{long}", f"dog/{long}")
    sets = read_sets(str(tmp_path / "set"))
    corrected_set.write(labels(sets, **{f"cat/{long}": "dog"}), sets, tmp_path / "new", False)
    names = ["dog/" + "é" * 122 + " (cat).png", f"dog/{long}"]
    assert below(tmp_path / "new") == sorted(names)


def test_further_columns_tell_one_set_from_another(tmp_path):
    found = set()
    for note in ("old", "new"):
        save(tmp_path, "1.png", "2.png")
        (tmp_path / "labels.csv").write_text(f"path,label,note\n1.png,cat,\n2.png,dog,{note}\n")
        corrected = labels(read_sets(str(tmp_path / "labels.csv")))
        assert corrected.digest(False) == corrected.digest(False)
        found.add(corrected.digest(False))
    renamed = replace(corrected.images, header=("path", "class"))
    found.add(replace(corrected, images=renamed).digest(False))
    assert len(found) == 3


@pytest.mark.parametrize("name, header, form", [
    ("labels.csv", ["path", "label"], USUAL),
    ("labels.csv", ["Image", "class"], TableForm.of("image", "class", None)),
    ("metadata.csv", ["File_Name", "label"], USUAL),
])  # fmt: skip
def test_a_table_with_its_columns(name, header, form, source, tmp_path):
    path = source / name
    rows = [("worker", *header[::-1]), ("x, y", "cat", "train/cat/1.png"),
            ("", "dog", "test/dog/9.png")]  # fmt: skip
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    sets = read_sets(str(path), form=form)
    corrected = labels(sets, **{"train/cat/1.png": "dog"})
    corrected_set.write(corrected, sets, tmp_path / "new", False)
    with open(tmp_path / "new" / name, newline="") as file:
        assert list(csv.reader(file)) == [
            [*header, "worker"],
            ["train/cat/1.png", "dog", "x, y"],
            ["test/dog/9.png", "dog", ""],
        ]
    assert below(tmp_path / "new") == [name, "test/dog/9.png", "train/cat/1.png"]


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("name", ["labels.csv", "labels.csv/1.png"])
def test_a_table_takes_the_place_of_no_image(tmp_path, name, copy):
    """Nor of the file that a link leads to while its folder is a temporary one, a level deeper."""
    outside = tmp_path / "x/a/b/data/labels.csv"
    for path in (tmp_path / "a/b/data" / name, tmp_path / "a/b/data/2.png", outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    (tmp_path / "a/b/data/t.csv").write_text(f"path,label\n{name},cat\n2.png,dog\n")
    sets = read_sets(str(tmp_path / "a/b/data/t.csv"))
    with pytest.raises(UserError, match="image 'labels.csv': expected another name"):
        corrected_set.write(labels(sets), sets, tmp_path / "x/new", copy)
    assert outside.read_bytes() == b"mine" and not (tmp_path / "x/new").exists()


def test_a_full_disk_leaves_nothing(source, tmp_path, monkeypatch):
    sets = read_sets(str(source))

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(UserError, match="No space left on device"):
        corrected_set.write(labels(sets), sets, tmp_path / "new", True)
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob(".new*"))


def test_a_mounted_folder_is_filled(source, tmp_path, monkeypatch):
    """It cannot be replaced, nor what lies on another file system be renamed into it."""
    sets = read_sets(str(source))
    (tmp_path / "new").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "new")
    inode = (tmp_path / "new").stat().st_ino
    corrected_set.write(labels(sets), sets, tmp_path / "new", True)
    assert (tmp_path / "new").stat().st_ino == inode
    assert below(tmp_path / "new") == below(source)


def test_an_image_that_is_gone_is_named(source, tmp_path):
    sets = read_sets(str(source))
    (source / "train/dog/1.png").unlink()
    with pytest.raises(UserError, match=r"image '.*train/dog/1.png': No such file or directory"):
        corrected_set.write(labels(sets), sets, tmp_path / "new", True)
    assert not (tmp_path / "new").exists()
