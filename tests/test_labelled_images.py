"""People's own images: every form that they come in, and what is said of damaged ones."""

import os
import unicodedata
import zipfile
from itertools import product

import numpy as np
import pytest
from class_folders import refuse, save
from PIL import Image
from processes import names_in_utf8

from chainer_jo.errors import UserError
from chainer_jo.relabel.read.class_folders import images_below
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.read.labelled_images import labels_of, read_sets

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def table(tmp_path):
    """The same images by a table."""
    root = tmp_path / "listed"
    for i, name in enumerate(("a é.png", "more/b.jpg", "c, d.webp")):
        save(root / name, 10 * i)
    (root / "labels.csv").write_text(
        'path,label,worker\na é.png,cat 9,x\nmore/b.jpg,cat 9,y\n"c, d.webp",cat 10,z\n',
        encoding="utf-8",
    )
    return root / "labels.csv"


def test_class_folders(folders):
    sets = read_sets(str(folders))
    assert sets.train.class_names == ("cat 9", "cat 10")
    assert list(sets.train.paths) == ["cat 10/a.webp", "cat 9/a é.png", "cat 9/more/b.JPG"]
    assert sets.train.given.dtype == np.int32 and sets.train.given.tolist() == [1, 0, 0]
    assert sets.train.columns == {} and sets.train.lines == []
    assert sets.held_out == {}
    assert all(map(os.path.isfile, sets.train.files()))
    assert sets.train.files([2]) == [str(folders / "cat 9/more/b.JPG")]


@names_in_utf8
def test_an_accent_of_a_class_folder_is_the_same_however_it_is_encoded(tmp_path):
    """Folders from a Mac, where it is a character of its own, and a table from elsewhere."""
    folder = unicodedata.normalize("NFD", "café")
    for name in (f"{folder}/1.png", "tea/2.png"):
        save(tmp_path / "set" / name)
    for label in ("café", folder):
        (tmp_path / "true.csv").write_text(f"path,label\n{folder}/1.png,{label}\n", "utf-8")
        sets = read_sets(str(tmp_path / "set"))
        assert sets.train.class_names == ("café", "tea")
        assert labels_of(str(tmp_path / "true.csv"), sets.train).tolist() == [0, -1]
        assert list(sets.train.paths) == [f"{folder}/1.png", "tea/2.png"], "as they are"
        assert all(map(os.path.isfile, sets.train.files()))


def test_table(table):
    sets = read_sets(str(table))
    assert sets.train.class_names == ("cat 9", "cat 10")
    assert list(sets.train.paths) == ["a é.png", "more/b.jpg", "c, d.webp"]
    assert sets.train.given.tolist() == [0, 0, 1]
    assert sets.train.columns == {"worker": ["x", "y", "z"]}
    assert sets.train.show(2) == "'c, d.webp' (line 4)"
    assert all(map(os.path.isfile, sets.train.files()))


@pytest.mark.parametrize("name", ["validation", "val", "Valid"])
def test_parts_of_a_folder(folders, tmp_path, name):
    root = tmp_path / "parted"
    for part in ("train", name, "test"):
        save(root / part / "cat 9" / "1.png")
        save(root / part / "cat 10" / "1.png")
    save(root / "raw" / "1.png")
    sets = read_sets(str(root))
    assert list(sets.train.paths) == ["train/cat 10/1.png", "train/cat 9/1.png"]
    validation, test = sets.held_out["validation"], sets.held_out["test"]
    assert list(validation.paths) == [f"{name}/cat 10/1.png", f"{name}/cat 9/1.png"]
    assert list(test.paths) == ["test/cat 10/1.png", "test/cat 9/1.png"]
    assert test.class_names == sets.train.class_names == ("cat 9", "cat 10")


def test_sets_of_right_labels_in_other_forms(folders, table, tmp_path):
    test = read_sets(str(folders), test=str(table)).held_out["test"]
    assert test.class_names == ("cat 9", "cat 10")
    assert test.given.tolist() == [0, 0, 1]
    assert list(test.paths) == ["a é.png", "more/b.jpg", "c, d.webp"]
    (again,) = read_sets(str(table), validation=str(folders)).held_out.items()
    assert again[0] == "validation" and again[1].given.tolist() == [1, 0, 0]


def test_a_number_in_two_spellings_is_refused(table):
    """As pandas writes whole numbers of a column with empty cells."""
    text = table.read_text().replace("cat 10", "9.0")
    table.write_text(text.replace("cat 9", "9"))
    refuse("classes '9' and '9.0' are one number, expected one spelling", table)
    table.write_text(text.replace("9.0", "cat 9.0"))
    assert "cat 9.0" in read_sets(str(table)).train.class_names


def test_given_sets_take_the_place_of_parts(table, tmp_path):
    for name in ("train/cat 9/1.png", "train/cat 10/1.png", "test/cat 9/1.png"):
        save(tmp_path / "parted" / name)
    assert len(read_sets(str(tmp_path / "parted"), test=str(table)).held_out["test"]) == 3
    refuse("--test .*has parts of its own", table, test=tmp_path / "parted")


@pytest.mark.parametrize("row, words", [
    ("e.png,dog", "a class that no training image has: 'dog', 'e.png' .line 2."),
    ("more/b.jpg,cat 9", "more/b.jpg' is in the train and in the test set"),
])  # fmt: skip
def test_a_test_set_that_does_not_fit(table, row, words):
    other = table.with_name("test.csv")
    save(table.parent / "e.png")
    other.write_text(f"path,label\n{row}\n")
    refuse(words, table, test=other)


@pytest.mark.parametrize("paths, words", [
    ([f"gone {i}.png" for i in range(5)],
     r"No such file or directory \(5 times\): 'gone 0.png' \(line 5\), 'gone 1.png'"),
    (["gone.png", "more"], r"not a file: 'more' \(line 6\)"),
    (["more\\b.jpg", "gone.png"],
     r"directory, expected / in the place of \\: 'more\\\\b.jpg' .line 5.; .*'gone.png'"),
])  # fmt: skip
def test_images_that_are_not_there_are_named_with_their_lines(table, paths, words):
    table.write_text(table.read_text() + "".join(f"{path},cat 9,x\n" for path in paths))
    refuse(words, table)


def test_classes_of_more_digits_than_python_makes_an_int_of(table):
    """They are sorted by value as shorter ones are."""
    names = ["9" * 5000, "1" + "0" * 5000, "8"]
    paths = ["a é.png", "more/b.jpg", '"c, d.webp"']
    rows = [f"{path},{name}" for path, name in zip(paths, names, strict=True)]
    table.write_text("\n".join(["path,label", *rows]), "utf-8")
    assert read_sets(str(table)).train.class_names == ("8", *names[:2])


@pytest.mark.parametrize("names, classes, parts", [
    (["train/1.png", "car/1.png"], ("car", "train"), []),
    (["valid/2020/1.png", "invalid/2020/2.png"], ("invalid", "valid"), []),
    (["Train/cat/1.png", "Train/dog /2.png", "Test/dog/3.png"], ("cat", "dog"), ["test"]),
])  # fmt: skip
def test_classes_and_parts_are_told_apart(tmp_path, names, classes, parts):
    """Whatever a class is called, parts in any case, spaces around a class."""
    for name in names:
        save(tmp_path / "pets" / name)
    sets = read_sets(str(tmp_path / "pets"))
    assert sets.train.class_names == classes and list(sets.held_out) == parts
    assert list(sets.train.paths) == sorted(names[: len(sets.train)])


def test_one_class_is_no_task(tmp_path):
    save(tmp_path / "pets/cat/1.png")
    refuse(r"1 class \('cat'\), expected at least two$", tmp_path / "pets")
    (tmp_path / "pets/labels.csv").write_text("path,label\ncat/1.png,cat\n")
    refuse("expected at least two, or one of the tables there: 'labels.csv'", tmp_path / "pets")


@pytest.mark.parametrize("names", [("val", "test"), ("Testing",), ("valid", "test")])
def test_parts_without_a_training_part_are_refused(tmp_path, names):
    for name in names:
        save(tmp_path / "pets" / name / "cat/1.png")
        save(tmp_path / "pets" / name / "dog/2.png")
    refuse(f"{', '.join(names)} without train/, expected both", tmp_path / "pets")
    if len(names) > 1:  # classes all the same, with images directly in them, or another beside
        save(tmp_path / "pets" / names[0] / "3.png")
        assert len(read_sets(str(tmp_path / "pets")).train.class_names) == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_hugging_faces_table_as_spreadsheets_write_it(folders, delimiter, encoding):
    """Beside class folders its labels count, or it is refused."""
    rows = ["file_name,label", "cat 9/a é.png,tea", "cat 9/more/b.JPG,tea", "cat 10/a.webp,coffee"]
    text = "\r\n".join(rows).replace(",", delimiter)
    (folders / "metadata.csv").write_bytes(text.encode(encoding))
    if encoding in ("utf-16-le", "latin-1"):  # without a mark nobody knows it
        refuse("labels '.*metadata.csv': ", folders)
    else:
        assert read_sets(str(folders)).train.class_names == ("coffee", "tea")


def test_another_table_of_that_name_is_left_out(folders, caplog):
    for content in (b"id;name\n1;\xe9", b"\x89PNG\0\xff", b""):
        (folders / "metadata.csv").write_bytes(content)
        assert read_sets(str(folders)).train.class_names == ("cat 9", "cat 10")
        assert "1 left out" in caplog.text and "'metadata.csv'" in caplog.text


def test_folders_called_as_parts_are_classes_with_a_note(tmp_path, caplog):
    for name in ("train/cat_1.png", "train/dog_1.png", "valid/cat_2.png", "valid/dog_2.png"):
        save(tmp_path / name)
    assert read_sets(str(tmp_path)).train.class_names == ("train", "valid")
    note = f"{tmp_path}: train, valid: classes, not parts of the set"
    assert note in caplog.messages
    caplog.clear()
    save(tmp_path / "bus/1.png"), save(tmp_path / "bus/2.png")
    assert len(read_sets(str(tmp_path)).train.class_names) == 3 and caplog.messages == [note]
    save(tmp_path / "test/bus/3.png")  # a part of this set, as it repeats a class
    refuse(r"test without train/, expected both", tmp_path)


def test_a_table_and_images_in_another_folder(table, tmp_path):
    elsewhere = tmp_path / "lists" / "labels.csv"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(table.read_bytes())
    form = TableForm.of(None, None, str(table.parent))
    assert read_sets(str(elsewhere), form=form).train.files() == read_sets(str(table)).train.files()


def test_folders_beside_parts_and_files_that_are_no_images_are_left_out_and_noted(
    folders, tmp_path, caplog
):
    for name in ("parts/train/a/1.png", "parts/train/b/2.png", "parts/c/3.png"):
        save(tmp_path / name)
    assert read_sets(str(tmp_path / "parts")).train.class_names == ("a", "b")
    beside = "1 left out, as they are beside the parts of the set: 'c/'"
    assert f"{tmp_path / 'parts'}: {beside}" in caplog.messages
    caplog.clear()
    for name in ("readme.txt", "cat 9/Thumbs.db", "cat 9/.hidden.png", ".git/1.png",
                 "__MACOSX/cat 9/1.png", "@eaDir/2.jpg", "cat 9/@eaDir/a é.png/thumb.jpg",
                 "#recycle/cat 9/1.png", "lost+found/1.png"):  # fmt: skip
        (folders / name).parent.mkdir(parents=True, exist_ok=True)
        (folders / name).write_text("x")
    (folders / "dog").mkdir()
    sets = read_sets(str(folders))
    assert len(sets.train) == 3 and sets.train.class_names == ("cat 9", "cat 10")
    assert caplog.messages[0] == (
        f"{folders}: 3 left out, as they are no images in class folders: "
        "'dog/', 'readme.txt', 'cat 9/Thumbs.db'"
    )


@pytest.mark.parametrize("target", ["..", "../..", "../../..", "../../train", "../../../dogs"])
def test_links_to_the_data_and_to_folders_above_it_are_not_followed(tmp_path, target, caplog):
    """Other classes' images would be this one's, too."""
    for name in ("pets/train/cat/1.png", "pets/train/dog/2.png", "other/3.png", "dogs/up/4.png"):
        save(tmp_path / name)
    (tmp_path / "pets/train/cat/up").symlink_to(target)
    (tmp_path / "dogs/back").symlink_to(tmp_path / "pets/train")
    found = ["train/cat/1.png", "train/dog/2.png"]
    if target.endswith("dogs"):
        found.insert(1, "train/cat/up/up/4.png")
    assert list(read_sets(str(tmp_path / "pets")).train.paths) == found
    without_parts = read_sets(str(tmp_path / "pets/train")).train.paths
    assert [f"train/{path}" for path in without_parts] == found


def test_links_are_followed_but_not_in_circles(folders, tmp_path):
    """Images to be classified are each found once, too."""
    (folders / "cat 9/up").symlink_to("../..")
    assert len(images_below(folders)) == 3
    save(tmp_path / "elsewhere/1.png")
    (folders / "all").symlink_to(folders)
    (folders / "dog").symlink_to(tmp_path / "elsewhere")
    (folders / "cat 9/self").symlink_to("..")
    sets = read_sets(str(folders))
    assert len(sets.train) == 4 and "dog/1.png" in list(sets.train.paths)
    (folders / "cat 9/gone.png").symlink_to("nowhere.png")
    refuse("gone.png': a link that leads nowhere", folders)


def test_a_folder_is_found_once_however_many_links_lead_to_it(folders):
    """Here ten million."""
    save(folders / "cat 10/7/1.png")
    for i, k in product(range(7), range(10)):
        (folders / f"cat 10/{i}").mkdir(exist_ok=True)
        (folders / f"cat 10/{i}/{k}").symlink_to(folders / f"cat 10/{i + 1}")
    assert len(read_sets(str(folders)).train) == 4


def test_a_name_in_two_encodings_of_its_accents_is_refused(folders):
    """As after copies from a Mac and from Linux."""
    for form in ("NFC", "NFD"):
        save(folders / "cat 10" / unicodedata.normalize(form, "é.png"))
    refuse(r"'cat 10/\\xe9.png' and 'cat 10/e\\u0301.png': the same name in NFC", folders)


def three_validations(path):
    for part in ("train", "val", "validation"):
        save(path / part / "cat/1.png")


def name_in_latin_1(path):
    save(path / "cat/1.png")
    (path / os.fsdecode(b"cat/\xe9.png")).touch()


@pytest.mark.parametrize("make, words", [
    (lambda path: None, "expected "),
    (lambda path: path.mkdir(), "expected "),
    (lambda path: save(path / "1.png"), "expected "),
    (lambda path: zipfile.ZipFile(path, "w").close(), "expected "),
    (lambda path: path.write_text(""), "expected "),
    (lambda path: path.write_bytes(b"\x89PNG\xff"), "expected "),
    (three_validations, "train, validation, val, expected one of a kind"),
    pytest.param(name_in_latin_1, r"udce9.png': expected a name in UTF-8", marks=names_in_utf8),
])  # fmt: skip
def test_what_is_none_of_these_forms(make, words, tmp_path):
    make(tmp_path / "x")
    refuse(words, tmp_path / "x")


def test_fingerprint_follows_labels_and_sizes_but_not_the_place(table, tmp_path):
    first = read_sets(str(table)).train
    again = read_sets(str(table)).train
    assert first.fingerprint == again.fingerprint
    table.parent.rename(tmp_path / "moved")
    moved = tmp_path / "moved" / "labels.csv"
    os.utime(moved.parent / "a é.png", ns=(1, 1))
    there = read_sets(str(moved)).train
    assert there.fingerprint == first.fingerprint
    text = moved.read_text("utf-8").replace("a é.png,cat 9", "a é.png,cat 10")
    moved.write_text(text, "utf-8")
    relabelled = read_sets(str(moved)).train
    assert relabelled.fingerprint != first.fingerprint
    Image.new("RGB", (60, 40)).save(moved.parent / "a é.png")
    assert read_sets(str(moved)).train.fingerprint != relabelled.fingerprint


def test_a_table_for_each_part_is_refused(tmp_path):
    """Their folders would be taken for classes."""
    for part in ("train", "test"):
        save(tmp_path / part / "1.png")
        (tmp_path / part / "metadata.csv").write_text("file_name,label\n1.png,cat\n")
    refuse("each part has a table of its own .train/metadata.csv.", tmp_path)


def test_true_labels(table, tmp_path, caplog):
    images = read_sets(str(table)).train
    right = tmp_path / "elsewhere" / "right.csv"
    right.parent.mkdir()
    for path in ("more/b.jpg", f"{images.root}/more/b.jpg"):
        right.write_text(f"label,path\ncat 10,{path}\nhorse,of another image.png\n")
        assert labels_of(str(right), images).tolist() == [-1, 1, -1]
        assert "right.csv: no such image: line 3, 'of another image.png'" in caplog.text
    right.write_text("path,label\nmore/b.jpg,dog\n")
    assert labels_of(str(right), images, others=True).tolist() == [-1, len(images.class_names), -1]
    assert "right.csv: a class that the images do not have: line 2, 'dog'" in caplog.text
    with pytest.raises(
        UserError, match="do not have, expected one of cat 9, cat 10: line 2, 'dog'"
    ):
        labels_of(str(right), images)
    right.write_text("path,label\nlisted/more/b.jpg,cat 9\n")
    with pytest.raises(UserError, match="such as 'a é.png', found such as 'listed/more/b.jpg'"):
        labels_of(str(right), images)
