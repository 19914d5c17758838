"""People's own images: every form that they come in, and what is said of damaged ones."""

import gzip
import io
import os
import tarfile
import unicodedata
import zipfile

import numpy as np
import pytest
from hostile import memory_below
from PIL import Image
from processes import names_in_utf8

from chainer_jo.data import source, tar_members
from chainer_jo.errors import UserError
from chainer_jo.relabel.read.class_folders import images_below
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.read.labelled_images import labels_of, read_sets

pytestmark = pytest.mark.usefixtures("cache")


def save(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 4), (colour, 0, 0)).save(path)


@pytest.fixture
def folders(tmp_path):
    """Classes cat 9 and cat 10, with spaces, accents and nested folders."""
    root = tmp_path / "my pets"
    for i, name in enumerate(("cat 9/a é.png", "cat 9/more/b.JPG", "cat 10/a.webp")):
        save(root / name, 10 * i)
    return root


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


def refuse(words, *arguments, **more):
    with pytest.raises(UserError, match=words) as caught:
        read_sets(*map(str, arguments), **{name: str(value) for name, value in more.items()})
    assert "\n" not in str(caught.value)


def test_class_folders(folders):
    sets = read_sets(str(folders))
    assert sets.class_names == ("cat 9", "cat 10")
    assert list(sets.train.paths) == ["cat 10/a.webp", "cat 9/a é.png", "cat 9/more/b.JPG"]
    assert sets.train.labels.dtype == np.int32 and sets.train.labels.tolist() == [1, 0, 0]
    assert sets.train.columns == {} and sets.train.lines is None
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
        assert sets.class_names == ("café", "tea")
        assert labels_of(str(tmp_path / "true.csv"), sets.train).tolist() == [0, -1]
        assert list(sets.train.paths) == [f"{folder}/1.png", "tea/2.png"], "as they are"
        assert all(map(os.path.isfile, sets.train.files()))


def test_table(table):
    sets = read_sets(str(table))
    assert sets.class_names == ("cat 9", "cat 10")
    assert list(sets.train.paths) == ["a é.png", "more/b.jpg", "c, d.webp"]
    assert sets.train.labels.tolist() == [0, 0, 1]
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
    assert test.class_names == sets.class_names == ("cat 9", "cat 10")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("top", [".", "pets"])
def test_tar_of_class_folders(folders, tmp_path, mode, top):
    """With folders of a system beside them."""
    path = tmp_path / "pets.tar"
    with tarfile.open(path, mode) as tar:
        for name in (top, "__MACOSX", "@eaDir"):
            tar.add(folders, name)
    sets = read_sets(str(path))
    expected = read_sets(str(folders)).train
    assert list(sets.train.paths) == list(expected.paths)
    assert sets.train.labels.tolist() == expected.labels.tolist()
    assert all(map(os.path.isfile, sets.train.files()))


def test_a_tar_is_unpacked_once_and_again_when_files_are_taken_away(folders, tmp_path):
    path = tmp_path / "pets.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(folders, "pets")
    first, again = read_sets(str(path)).train, read_sets(str(path)).train
    assert first.files() == again.files()
    assert first.files_digest == again.files_digest
    os.unlink(first.files()[0])
    assert all(map(os.path.isfile, read_sets(str(path)).train.files()))


@pytest.mark.parametrize("part", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_damaged_tar(folders, tmp_path, cache, mode, part):
    for i in range(40):
        save(folders / f"cat 9/{i}.png")
    path = tmp_path / "pets.tar"
    with tarfile.open(path, mode) as tar:
        tar.add(folders, "pets")
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content.rstrip(b"\0")))])
    refuse("pets.tar'.* damaged", path)
    assert left_in(cache) == []


def add(tar, name, kind=tarfile.REGTYPE, target="", content=b"", **more):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, len(content)
    for key, value in more.items():
        setattr(member, key, value)
    tar.addfile(member, io.BytesIO(content))


def left_in(cache):
    return [path for path in cache.glob("*") if path.suffix != ".lock"]


@pytest.mark.parametrize("name, kind, target, words", [
    ("../out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("cat 9/../../out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("/out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("a/" * 1000 + "out.png", tarfile.REGTYPE, "", "or too deep"),
    ("cat 9/a é.png/out.png", tarfile.REGTYPE, "", "is damaged"),
    ("cat 9", tarfile.REGTYPE, "", "is damaged"),
    (".", tarfile.REGTYPE, "", "is damaged"),
    ("x" * 300, tarfile.REGTYPE, "", "is damaged"),
    ("a\0b", tarfile.REGTYPE, "", "is damaged"),
    ("cat 9/l.png", tarfile.SYMTYPE, "a é.png", "is a link, .*tar --dereference"),
    ("cat 9/l.png", tarfile.SYMTYPE, "/etc/hosts", "is a link, .*tar --dereference"),
    ("cat 9/l.png", tarfile.LNKTYPE, "cat 9/a é.png", "is a link, .* --hard-dereference"),
    ("cat 9/pipe.png", tarfile.FIFOTYPE, "", "is a special"),
    ("cat 9/disk.png", tarfile.BLKTYPE, "", "is a special"),
])  # fmt: skip
def test_a_tar_with_more_than_files_and_folders_below_it_is_refused(
    folders, tmp_path, cache, name, kind, target, words
):
    path = tmp_path / "pets.tar"
    with tarfile.open(path, "w") as tar:
        for each in folders.iterdir():
            tar.add(each, each.name)
        if "\0" in name:
            add(tar, "short", pax_headers={"path": name})
        else:
            add(tar, name, kind, target)
    refuse(f"pets.tar'.*{words}", path)
    assert left_in(cache) == [] and not (tmp_path / "out.png").exists()


@pytest.fixture(params=["filters", "before 3.11.4"])
def filters(request, monkeypatch):
    """Of the standard library: early versions of Python 3.11, as in Debian 12, have none."""
    if request.param != "filters":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        # What is filtered by from Python 3.14 on, unless something else is asked for.
        none = staticmethod(lambda member, path: member)
        monkeypatch.setattr(tarfile.TarFile, "extraction_filter", none, raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filters of tars")


def test_a_tar_whose_links_are_longer_than_paths_may_be_writes_nothing_outside(
    folders, tmp_path, cache, filters
):
    """Real paths above PATH_MAX get around the filters of Python before 3.11.13 and 3.12.11."""
    (tmp_path / "outside").mkdir()
    steps, path = "abcdefghijklmnop", ""
    with tarfile.open(tmp_path / "pets.tar", "w") as tar:
        tar.add(folders, ".")
        for step in steps:
            add(tar, f"{path}{'d' * 247}", tarfile.DIRTYPE, mode=0o755)
            add(tar, f"{path}{step}", tarfile.SYMTYPE, "d" * 247)
            path += f"{'d' * 247}/"
        top = "/".join(steps) + "/" + "l" * 254
        add(tar, top, tarfile.SYMTYPE, "../" * len(steps))
        add(tar, "escape", tarfile.SYMTYPE, f"{top}/{'../' * 30}{str(tmp_path)[1:]}/outside")
        add(tar, "escape/written.txt", content=b"text")
    refuse("pets.tar'.*'a' is a link", tmp_path / "pets.tar")
    assert os.listdir(tmp_path / "outside") == [] and left_in(cache) == []


def header(name, kind=tarfile.REGTYPE, size=0, pax=None):
    """The header of a member alone, with any size."""
    member = tarfile.TarInfo(name)
    member.type, member.size, member.pax_headers = kind, size, pax or {}
    return member.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


def sparse(**about):
    return header("cat 9/s.png", pax={f"GNU.sparse.{key}": value for key, value in about.items()})


MIB, LARGE = 1 << 20, 64 << 20


@pytest.mark.parametrize("start, unit, words", [
    (header("cat 9/x.png", size=LARGE), bytes(MIB), f"unpacks to {LARGE} bytes, expected"),
    (header("README", size=LARGE), bytes(MIB), f"unpacks to {LARGE} bytes, expected"),
    (header("cat 9/x.png", pax={"size": str(1 << 63)}), b"", f"unpacks to {1 << 63} bytes"),
    (header("cat 9/x.png", pax={"size": "-1024"}), b"", "unpacks to -1024 bytes"),
    (header("cat 9/x.png", size=-1024), b"", "damaged"),
    (header("x", tarfile.XHDTYPE, LARGE), b"30 comment=aaaaaaaaaaaaaaaaaa\n" * 32768, "damaged"),
    (header("x", tarfile.GNUTYPE_LONGNAME, LARGE), b"a" * MIB, "damaged"),
    (header("x", tarfile.GNUTYPE_LONGNAME, -512), b"a" * MIB, "damaged"),
    (header("x", tarfile.GNUTYPE_LONGNAME, 1) * 2000, b"a", "damaged"),
    (sparse(major="1", minor="0", realsize="9") + b"100000000\n", b"1\n" * MIB, "damaged"),
    (sparse(size=str(1 << 40), map="0,0"), b"", f"unpacks to {1 << 40} bytes"),
    (sparse(size="9", map="0,0"), b"", "is a special or sparse file"),
    (sparse(size="9", map="zero"), b"", "damaged"),
    (header("cat 9/s.png", tarfile.GNUTYPE_SPARSE), b"", "damaged"),
    (bytes(1024), bytes(MIB), "damaged"),
])  # fmt: skip
def test_a_tar_that_would_fill_memory_or_disk_is_refused(
    folders, tmp_path, cache, monkeypatch, start, unit, words
):
    """A megabyte of gzip is a gigabyte of zeros."""
    monkeypatch.setattr(tar_members, "_ALWAYS", 16 * MIB)
    path = tmp_path / "pets.tar.gz"
    with tarfile.open(tmp_path / "pets.tar", "w") as tar:
        tar.add(folders, ".")
        packed = tar.offset
    with gzip.open(path, "wb", 1) as file:
        file.write((tmp_path / "pets.tar").read_bytes()[:packed] + start)
        for _ in range(LARGE // MIB):
            file.write(unit)
    with memory_below(16 * MIB):
        refuse(f"pets.tar.gz'.* {words}", path)
    assert left_in(cache) == []


@pytest.mark.parametrize("read", [read_sets, lambda data: source.find(data).load()])
def test_the_first_header_of_a_tar_does_not_fill_the_memory(tmp_path, read):
    path = tmp_path / "pets.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(header("x", tarfile.GNUTYPE_LONGNAME, LARGE) + b"a" * LARGE)
    refused = pytest.raises(UserError, match=r"pets.tar.gz': not a tar, or damaged")
    with memory_below(16 * MIB), refused:
        read(str(path))


def test_images_that_a_tar_compresses_well_are_unpacked(tmp_path):
    """Of one colour and uncompressed: no image compresses better."""
    for name in ("cat/1.bmp", "dog/2.bmp"):
        save(tmp_path / "pets" / name)
        Image.new("RGB", (3000, 3000)).save(tmp_path / "pets" / name)
    with tarfile.open(tmp_path / "pets.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "pets", ".")
    assert len(read_sets(str(tmp_path / "pets.tar.gz")).train) == 2


def test_sets_of_right_labels_in_other_forms(folders, table, tmp_path):
    test = read_sets(str(folders), test=str(table)).held_out["test"]
    assert test.class_names == ("cat 9", "cat 10")
    assert test.labels.tolist() == [0, 0, 1]
    assert list(test.paths) == ["a é.png", "more/b.jpg", "c, d.webp"]
    (again,) = read_sets(str(table), validation=str(folders)).held_out.items()
    assert again[0] == "validation" and again[1].labels.tolist() == [1, 0, 0]


def test_given_sets_take_the_place_of_parts(table, tmp_path):
    for name in ("train/cat 9/1.png", "train/cat 10/1.png", "test/cat 9/1.png"):
        save(tmp_path / "parted" / name)
    assert len(read_sets(str(tmp_path / "parted"), test=str(table)).held_out["test"]) == 3
    refuse("--test .*has parts of its own", table, test=tmp_path / "parted")


@pytest.mark.parametrize("row, words", [
    ("e.png,dog", "a class that no training image has: 'dog', 'e.png' .line 2."),
    ("more/b.jpg,cat 9", "'more/b.jpg' .line 2. is both in the train and in the test set"),
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
    assert read_sets(str(table)).class_names == ("8", *names[:2])


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
    assert sets.class_names == classes and list(sets.held_out) == parts
    assert list(sets.train.paths) == sorted(names[: len(sets.train)])


def test_one_class_is_no_task(tmp_path):
    save(tmp_path / "pets/cat/1.png")
    refuse(r"1 class \('cat'\), expected at least two$", tmp_path / "pets")
    (tmp_path / "pets/labels.csv").write_text("path,label\ncat/1.png,cat\n")
    refuse("expected at least two, or one of the tables there: 'labels.csv'", tmp_path / "pets")


def test_a_class_with_one_image_is_read_and_noted(table, caplog):
    assert np.bincount(read_sets(str(table)).train.labels).tolist() == [2, 1]
    assert caplog.messages == [f"{table}: a class with one image: 'cat 10', 'c, d.webp' (line 4)"]


@pytest.mark.parametrize("names", [("val", "test"), ("Testing",), ("valid", "test")])
def test_parts_without_a_training_part_are_refused(tmp_path, names):
    for name in names:
        save(tmp_path / "pets" / name / "cat/1.png")
        save(tmp_path / "pets" / name / "dog/2.png")
    refuse(f"{', '.join(names)} alone, expected train/, too", tmp_path / "pets")
    if len(names) > 1:  # classes all the same, with images directly in them, or another beside
        save(tmp_path / "pets" / names[0] / "3.png")
        assert len(read_sets(str(tmp_path / "pets")).class_names) == 2


def test_hugging_faces_folder(tmp_path):
    for path in ("a.png", "b.png"):
        (tmp_path / path).touch()
    (tmp_path / "metadata.csv").write_text("file_name,label,split\na.png,cat,x\nb.png,dog,y\n")
    images = read_sets(str(tmp_path)).train
    assert list(images.paths) == ["a.png", "b.png"] and images.class_names == ("cat", "dog")
    assert images.columns == {"split": ["x", "y"]}


def test_a_table_and_images_in_another_folder(table, tmp_path):
    elsewhere = tmp_path / "lists" / "labels.csv"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(table.read_bytes())
    form = TableForm.of(None, None, str(table.parent))
    assert read_sets(str(elsewhere), form=form).train.files() == read_sets(str(table)).train.files()


def test_folders_beside_the_parts_of_a_set_are_left_out_and_noted(tmp_path, caplog):
    for name in ("train/a/1.png", "train/b/2.png", "c/3.png"):
        (tmp_path / name).parent.mkdir(parents=True)
        Image.new("L", (4, 4)).save(tmp_path / name)
    assert read_sets(str(tmp_path)).train.class_names == ("a", "b")
    note = f"{tmp_path}: 1 left out, as they are beside the parts of the set: 'c/'"
    assert note in caplog.messages


def test_files_that_are_no_images_are_left_out_and_noted(folders, caplog):
    for name in ("readme.txt", "cat 9/Thumbs.db", "cat 9/.hidden.png", ".git/1.png",
                 "__MACOSX/cat 9/1.png", "@eaDir/2.jpg", "cat 9/@eaDir/a é.png/thumb.jpg",
                 "#recycle/cat 9/1.png", "lost+found/1.png"):  # fmt: skip
        (folders / name).parent.mkdir(parents=True, exist_ok=True)
        (folders / name).write_text("x")
    (folders / "dog").mkdir()
    sets = read_sets(str(folders))
    assert len(sets.train) == 3 and sets.class_names == ("cat 9", "cat 10")
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


def test_images_to_be_classified_are_each_found_once(folders):
    (folders / "cat 9/up").symlink_to("../..")
    assert len(images_below(folders)) == 3


def test_links_are_followed_but_not_in_circles(folders, tmp_path):
    save(tmp_path / "elsewhere/1.png")
    (folders / "all").symlink_to(folders)
    (folders / "dog").symlink_to(tmp_path / "elsewhere")
    (folders / "cat 9/self").symlink_to("..")
    sets = read_sets(str(folders))
    assert len(sets.train) == 4 and "dog/1.png" in list(sets.train.paths)
    (folders / "cat 9/gone.png").symlink_to("nowhere.png")
    refuse("gone.png': a link that leads nowhere", folders)


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
    assert there.files_digest != first.files_digest
    text = moved.read_text("utf-8").replace("a é.png,cat 9", "a é.png,cat 10")
    moved.write_text(text, "utf-8")
    relabelled = read_sets(str(moved)).train
    assert relabelled.fingerprint != first.fingerprint
    assert relabelled.files_digest == there.files_digest
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
    right.write_text("path,label\nmore/b.jpg,dog\n")
    assert labels_of(str(right), images, others=True).tolist() == [-1, len(images.class_names), -1]
    assert "right.csv: a class that the images do not have: line 2, 'dog'" in caplog.text
    with pytest.raises(UserError, match="right.csv'.*do not have: line 2, 'dog'"):
        labels_of(str(right), images)
    right.write_text("path,label\nlisted/more/b.jpg,cat 9\n")
    with pytest.raises(UserError, match="such as 'a é.png', found such as 'listed/more/b.jpg'"):
        labels_of(str(right), images)
