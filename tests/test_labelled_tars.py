"""Tars of people's own images: unpacked once; damaged and hostile ones are refused."""

import os
import shutil
import tarfile

import pytest
from class_folders import save

from chainer_jo.data import source
from chainer_jo.errors import UserError
from chainer_jo.relabel.read.labelled_images import read_sets

pytestmark = pytest.mark.usefixtures("cache")


def packed(folder, path, *names, mode="w"):
    """A tar of a folder by these names."""
    with tarfile.open(path, mode) as tar:
        for name in names or (".",):
            tar.add(folder, name)
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("top", [".", "pets"])
def test_tar_of_class_folders(folders, tmp_path, mode, top):
    """With folders of a system beside them."""
    path = packed(folders, tmp_path / "pets.tar", top, "__MACOSX", "@eaDir", mode=mode)
    sets = read_sets(str(path))
    expected = read_sets(str(folders)).train
    assert list(sets.train.paths) == list(expected.paths)
    assert sets.train.given.tolist() == expected.given.tolist()
    assert all(map(os.path.isfile, sets.train.files()))


def test_a_tar_is_unpacked_once_and_again_when_files_are_taken_away_or_it_is_replaced(
    folders, tmp_path
):
    """By one of the same size and time, as tars of reproducible builds and of object stores."""
    path = packed(folders, tmp_path / "pets.tar", "pets")
    first, again = read_sets(str(path)).train, read_sets(str(path)).train
    assert first.files() == again.files()
    os.unlink(first.files()[0])
    assert all(map(os.path.isfile, read_sets(str(path)).train.files()))
    (folders / "cat 9").rename(folders / "cat 7")
    other = packed(folders, tmp_path / "other.tar", "pets")
    assert other.stat().st_size == path.stat().st_size
    shutil.copystat(path, other)
    os.replace(other, path)
    names = read_sets(str(path)).train.class_names
    assert "cat 9" in first.class_names and "cat 7" in names and "cat 9" not in names


#: Readers of an experiment's data set and of a user's images; both take a tar with parts.
DOORS = {
    "data set": lambda path: source.find(str(path)).load(),
    "own images": lambda path: read_sets(str(path)),
}
both_doors = pytest.mark.parametrize("door", DOORS)


@pytest.fixture
def refused(cache):
    """Function that gives a tar to a door, which refuses it and leaves nothing."""

    def call(door, words, path):
        with pytest.raises(UserError, match=words) as caught:
            DOORS[door](path)
        assert "\n" not in str(caught.value)
        assert not [left for left in cache.glob("*") if left.suffix != ".lock"]

    return call


@pytest.fixture
def parted(tmp_path):
    """A training and a test part."""
    for part in ("train", "test"):
        for i, name in enumerate(("cat 9/a é.png", "cat 10/b.png")):
            save(tmp_path / "parted" / part / name, i)
    return tmp_path / "parted"


@both_doors
@pytest.mark.parametrize("part", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_damaged_tar_is_refused(parted, tmp_path, refused, mode, part, door):
    for i in range(40):
        save(parted / f"train/cat 9/{i}.png")
    path = packed(parted, tmp_path / "pets.tar", mode=mode)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content.rstrip(b"\0")))])
    refused(door, "pets.tar'.* damaged", path)
    if mode == "w:gz":
        path.write_bytes(content[:-6] + bytes([content[-6] ^ 255]) + content[-5:])
        refused(door, "pets.tar' is damaged .CRC check failed", path)


LINK = "is a link, .*tar --dereference --hard-dereference"
#: Name, type and target of a member, and the words that refuse it.
HOSTILE = [
    ("../train/cat 9/out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("train/cat 9/../../../train/out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("/train/cat 9/out.png", tarfile.REGTYPE, "", "leads out of it"),
    ("train/cat 9/l.png", tarfile.SYMTYPE, "a é.png", LINK),
    ("train/cat 9/l.png", tarfile.SYMTYPE, "/etc/hosts", LINK),
    ("train/cat 9/l.png", tarfile.LNKTYPE, "train/cat 9/a é.png", LINK),
    ("train/dog", tarfile.SYMTYPE, "cat 9", LINK),
    ("train/cat 9/pipe.png", tarfile.FIFOTYPE, "", "is a special file"),
    ("train/cat 9/disk.png", tarfile.BLKTYPE, "", "is a special file"),
]
#: Names of files that only a door which unpacks them meets.
UNPACKED = ["train/cat 9/a é.png/out.png", "train/cat 9", ".", "x" * 300, "a\0b"]


@pytest.mark.parametrize("door, name, kind, target, words", [
    *((door, *row) for row in HOSTILE for door in DOORS),
    *(("own images", name, tarfile.REGTYPE, "", "is damaged") for name in UNPACKED),
])  # fmt: skip
def test_a_tar_with_more_than_files_and_folders_below_it_is_refused(
    parted, tmp_path, refused, door, name, kind, target, words
):
    packed(parted / "train", tmp_path / "pets.tar", "train", "test")
    with tarfile.open(tmp_path / "pets.tar", "a") as tar:
        member = tarfile.TarInfo("short" if "\0" in name else name)
        member.type, member.linkname = kind, target
        member.pax_headers = {"path": name} if "\0" in name else {}
        tar.addfile(member)
    refused(door, f"pets.tar'.*{words}", tmp_path / "pets.tar")
    assert not [*tmp_path.rglob("out.png")]
