"""Tars of people's own images: unpacked once; damaged and hostile ones are refused."""

import gzip
import io
import os
import shutil
import tarfile

import pytest
from class_folders import pets, refuse, save
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
    os.unlink(first.files()[0])
    assert all(map(os.path.isfile, read_sets(str(path)).train.files()))


def test_a_tar_replaced_by_one_of_the_same_size_and_time_is_unpacked(folders, tmp_path):
    """As tars of reproducible builds and of object stores."""
    path, other = tmp_path / "pets.tar", tmp_path / "other.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(folders, "pets")
    first = read_sets(str(path)).train
    (folders / "cat 9").rename(folders / "cat 7")
    with tarfile.open(other, "w") as tar:
        tar.add(folders, "pets")
    assert other.stat().st_size == path.stat().st_size
    shutil.copystat(path, other)
    os.replace(other, path)
    names = read_sets(str(path)).train.class_names
    assert "cat 9" in first.class_names and "cat 7" in names and "cat 9" not in names


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
    monkeypatch.setattr(files, "unpacked_limit", lambda size: 16 * MIB)
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


@pytest.mark.parametrize("directories", [False, True])
def test_a_tar_of_deep_folders_is_refused(tmp_path, cache, directories):
    """7 kB of them were 96,000 folders."""
    with tarfile.open(tmp_path / "deep.tar.xz", "w:xz") as tar:
        for i in range(100):
            member = tarfile.TarInfo("/".join([f"{i}", *("x" * 90)]))
            member.type = tarfile.DIRTYPE if directories else tarfile.REGTYPE
            tar.addfile(member)
    refuse(
        "deep.tar.xz'.* is in one of 1,0[0-9]* folders, expected fewer", tmp_path / "deep.tar.xz"
    )
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
