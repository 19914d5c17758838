"""Tars of people's own images: unpacked once; damaged and hostile ones are refused."""

import gzip
import os
import shutil
import tarfile

import pytest
from class_folders import pets, save
from hostile import memory_below
from PIL import Image

from chainer_jo import files
from chainer_jo.data import source
from chainer_jo.errors import UserError
from chainer_jo.relabel.read.labelled_images import read_sets

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def folders(tmp_path):
    return pets(tmp_path / "my pets")


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
    assert sets.train.labels.tolist() == expected.labels.tolist()
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
    ("a/" * 1000 + "train/cat 9/out.png", tarfile.REGTYPE, "", "or too deep"),
    ("train/cat 9/l.png", tarfile.SYMTYPE, "a é.png", LINK),
    ("train/cat 9/l.png", tarfile.SYMTYPE, "/etc/hosts", LINK),
    ("train/cat 9/l.png", tarfile.LNKTYPE, "train/cat 9/a é.png", LINK),
    ("train/dog", tarfile.SYMTYPE, "cat 9", LINK),
    ("train/cat 9/pipe.png", tarfile.FIFOTYPE, "", "is a special"),
    ("train/cat 9/disk.png", tarfile.BLKTYPE, "", "is a special"),
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
    folders, tmp_path, refused, monkeypatch, start, unit, words
):
    """A megabyte of gzip is a gigabyte of zeros."""
    monkeypatch.setattr(files, "unpacked_limit", lambda size: 16 * MIB)
    path, whole = tmp_path / "pets.tar.gz", packed(folders, tmp_path / "pets.tar").read_bytes()
    with gzip.open(path, "wb", 1) as file:
        file.write(whole[: -(-len(whole.rstrip(b"\0")) // 512) * 512] + start)
        for _ in range(LARGE // MIB):
            file.write(unit)
    with memory_below(16 * MIB):
        refused("own images", f"pets.tar.gz'.* {words}", path)


@pytest.mark.parametrize("directories", [False, True])
def test_a_tar_of_deep_folders_is_refused(tmp_path, refused, directories):
    """7 kB of them were 96,000 folders."""
    with tarfile.open(tmp_path / "deep.tar.xz", "w:xz") as tar:
        for i in range(100):
            member = tarfile.TarInfo("/".join([f"{i}", *("x" * 90)]))
            member.type = tarfile.DIRTYPE if directories else tarfile.REGTYPE
            tar.addfile(member)
    words = "deep.tar.xz'.* is in one of 1,0[0-9]* folders, expected fewer"
    refused("own images", words, tmp_path / "deep.tar.xz")


@both_doors
def test_the_first_header_of_a_tar_does_not_fill_the_memory(tmp_path, refused, door):
    path = tmp_path / "pets.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(header("x", tarfile.GNUTYPE_LONGNAME, LARGE) + b"a" * LARGE)
    with memory_below(16 * MIB):
        refused(door, "pets.tar.gz': not a tar, or damaged", path)


def test_images_that_a_tar_compresses_well_are_unpacked(tmp_path):
    """Of one colour and uncompressed: no image compresses better."""
    for name in ("cat/1.bmp", "dog/2.bmp"):
        save(tmp_path / "pets" / name)
        Image.new("RGB", (3000, 3000)).save(tmp_path / "pets" / name)
    path = packed(tmp_path / "pets", tmp_path / "pets.tar.gz", mode="w:gz")
    assert len(read_sets(str(path)).train) == 2
