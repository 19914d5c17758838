"""Folders and tars of images: what is read, in which order, and what is refused."""

import multiprocessing
import os
import shutil
import tarfile
from multiprocessing import get_context

import numpy as np
import pytest
from PIL import Image

from chainer_jo.data import decoding, image_folder, source
from chainer_jo.errors import UserError

pytestmark = pytest.mark.usefixtures("cache")


def load(path):
    return source.find(path).load()


def picture(seed, shape=(5, 7, 3)):
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path):
    """Classes 9 and 10, images 2 and 10 in train, 1 in test; the seeds count in reading order."""
    root = tmp_path / "toys"
    names = ("train/9/2", "train/9/10", "train/10/2", "train/10/10", "test/9/1", "test/10/1")
    for seed, name in enumerate(names):
        save(root / f"{name}.png", picture(seed))
    return root


def pack(folder, path, mode, prefix=""):
    with tarfile.open(path, mode) as tar:
        for part in ("train", "test"):
            tar.add(folder / part, prefix + part)
    return path


def check(data):
    assert data.name == "toys"
    assert data.class_names == ("9", "10")
    assert data.train.labels.tolist() == [0, 0, 1, 1]
    assert data.test.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(data.train.images, [picture(i) for i in range(4)])
    np.testing.assert_array_equal(data.test.images, [picture(i) for i in (4, 5)])


def test_folder_with_links(folder, tmp_path):
    (folder / "train/9").rename(tmp_path / "nine")
    (folder / "train/9").symlink_to(tmp_path / "nine")
    check(load(str(folder)))


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.xz", "tar.bz2", "tgz"])
@pytest.mark.parametrize("prefix", ["", "./", "packed/"])
def test_tar(folder, tmp_path, ending, prefix, cache):
    mode = {"tar": "w", "tgz": "w:gz"}.get(ending, f"w:{ending[4:]}")
    found = source.find(str(pack(folder, tmp_path / f"toys.{ending}", mode, prefix)))
    assert found.name == "toys" and not cache.exists()
    check(found.load())


def test_grey_images_have_one_channel_unless_others_are_coloured(folder, tmp_path):
    for part in ("train", "test"):
        save(tmp_path / "grey" / part / "a" / "1.png", picture(1, (4, 4)))
    data = load(str(tmp_path / "grey"))
    assert data.train.images.shape[1:] == (4, 4, 1)
    np.testing.assert_array_equal(data.train.images[0, :, :, 0], picture(1, (4, 4)))
    save(folder / "train/9/1.png", picture(8, (5, 7)))
    data = load(str(folder))
    np.testing.assert_array_equal(data.train.images[0], np.stack([picture(8, (5, 7))] * 3, axis=2))
    np.testing.assert_array_equal(data.train.images[1], picture(0))


def test_hidden_and_unrelated_files_do_not_matter(folder):
    for name in (
        "train/9/.DS_Store", "train/9/._2.png", "train/list.txt", "README", "raw/9/1.png",
        "train/.ipynb_checkpoints/1.png", "train/@eaDir/2.png", "train/9/@eaDir/2.png",
        "test/__MACOSX/1.png",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    check(load(str(folder)))


@pytest.mark.parametrize("name", ["train/3.png", "test/9/near/3.PNG", "train/11/a/b/3.jpg"])
@pytest.mark.parametrize("packed", [False, True])
def test_images_in_another_place_are_refused(folder, tmp_path, packed, name):
    """They would be left out, perhaps a whole class."""
    save(folder / name, picture(9))
    path = pack(folder, tmp_path / "toys.tar", "w", "toys/") if packed else folder
    with pytest.raises(UserError, match=rf"{name}': expected in (train|test)/<class>/$"):
        load(str(path))


@pytest.mark.parametrize("packed", [False, True])
def test_decoded_once_until_an_image_changes_and_mapped(folder, tmp_path, monkeypatch, packed):
    def path():
        return str(pack(folder, tmp_path / "toys.tar", "w") if packed else folder)

    first = load(path())
    with monkeypatch.context() as patch:
        patch.setattr(image_folder, "_decode", lambda *_: pytest.fail("decoded again"))
        again = load(path())
    assert again.fingerprint() == first.fingerprint()
    assert isinstance(again.train.images.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        again.train.images[0] = 0
    save(folder / "train/9/2.png", picture(99))
    save(folder / "train/9/3.png", picture(98))
    after = load(path())
    check(first)
    check(again)
    np.testing.assert_array_equal(after.train.images[:2], [picture(99), picture(98)])


ARRAY = "train_images.npy"


@pytest.mark.parametrize("name, damage", [
    (ARRAY, lambda content: content[:-10]), (ARRAY, lambda content: b""), (ARRAY, None),
    (ARRAY, lambda content: content[:-1] + b"\x55"), ("", None),
    ("test_labels.npy", lambda content: content[:-8] + bytes(8)),
    (ARRAY, lambda content: content.replace(b"{", b"(", 1)),
    ("class_names.json", lambda content: content.replace(b"9", b"8")),
    ("class_names.json", lambda content: b"5"),
])  # fmt: skip
def test_a_damaged_cache_is_made_again(folder, cache, name, damage):
    load(str(folder))
    (made,) = (p for p in cache.iterdir() if p.is_dir())
    if damage:
        content = (made / name).read_bytes()
        (made / name).write_bytes(damage(content))
        assert (made / name).read_bytes() != content
    elif name:
        (made / name).unlink()
    else:  # as a kill in the middle leaves it
        made.rename(made.with_name(made.name + ".tmp"))
    check(load(str(folder)))
    assert [p for p in cache.iterdir() if p.is_dir()] == [made]


def test_failed_write_leaves_nothing(folder, cache, monkeypatch):
    def full(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(UserError, match="No space left on device.*CHAINER_DATASET_ROOT"):
        load(str(folder))
    assert [p.suffix for p in cache.iterdir()] == [".lock"]
    shutil.rmtree(cache)
    cache.write_text("a file where the folder should be")
    with pytest.raises(UserError, match="data cache .*CHAINER_DATASET_ROOT"):
        load(str(folder))


def test_cache_that_can_only_be_read(folder, cache):
    first = load(str(folder))
    for lock in cache.glob("*.lock"):
        lock.unlink()
        lock.mkdir()  # no lock can be had, whoever runs the test
    assert load(str(folder)).fingerprint() == first.fingerprint()


def test_image_that_cannot_be_read(folder, cache, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("chainer_jo.files.content", refused)
    refuse(folder, "image '.*png': Permission denied, expected a readable file", cache)


def _load_elsewhere(arguments):
    from chainer.dataset import download  # a new process imports chainer_jo first

    root, path = arguments
    download.set_dataset_root(root)
    return load(path).fingerprint()


def test_processes_at_once_share_one_decoding(folder, cache):
    with get_context("spawn").Pool(2) as pool:
        prints = pool.map(_load_elsewhere, [(str(cache.parent), str(folder))] * 2, chunksize=1)
    assert set(prints) == {load(str(folder)).fingerprint()}
    assert len([p for p in cache.iterdir() if p.is_dir()]) == 1


def refuse(path, message, cache):
    with pytest.raises(UserError, match=message) as caught:
        load(str(path))
    assert "\n" not in str(caught.value)
    assert not cache.exists() or not [p for p in cache.iterdir() if p.suffix != ".lock"]


@pytest.fixture
def cores(monkeypatch):
    """Two other processes decode."""
    monkeypatch.setattr(image_folder, "PER_PROCESS", 2)
    monkeypatch.setattr(image_folder, "CHUNK", 1)
    monkeypatch.setattr(image_folder, "usable_cores", lambda: 2)


@pytest.mark.usefixtures("cores")
def test_many_images_are_decoded_by_all_cores(folder, cache, monkeypatch):
    """An image that another process cannot decode is named; one that may start no others, as a
    Dask worker, unless it is told otherwise, decodes alone."""
    with monkeypatch.context() as patch:
        patch.setattr(decoding, "read", None)  # this process decodes nothing
        (folder / "train" / "10" / "2.png").rename(folder / "kept")
        (folder / "train" / "10" / "2.png").write_bytes(b"no image")
        refuse(folder, "image 'train/10/2.png' in .*: content of another kind", cache)
        (folder / "kept").rename(folder / "train" / "10" / "2.png")
        check(load(folder))
    shutil.rmtree(cache)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    check(load(folder))


def rename_class(folder):
    for part in ("train", "test"):
        os.rename(folder / part / "9", os.path.join(os.fsencode(folder / part), b"caf\xe9"))


def empty(part):
    for file in part.glob("*/*"):
        file.unlink()


IMAGE = "train/10/2.png"


@pytest.mark.parametrize("damage, words", [
    (lambda f: (f / IMAGE).write_bytes(b"no image"), f"image '{IMAGE}' in .*expected a whole png"),
    (lambda f: (f / IMAGE).write_bytes(b""), f"image '{IMAGE}' in .*expected a whole png or jpg"),
    (lambda f: os.truncate(f / IMAGE, 80), f"image '{IMAGE}' in .*expected a whole png or jpg"),
    (lambda f: (f / "test/9/notes.txt").write_text("x"), "image 'test/9/notes.txt' in .*expected"),
    (rename_class, "class 'caf.udce9', expected a name in UTF-8"),
    (lambda f: save(f / "test/9/1.png", picture(0, (7, 5, 3))),
     r"'test/9/1.png' .*7 x 5 pixels, expected 5 x 7 \(height x width\) like 'train/9/2.png'"),
    (lambda f: save(f / "test/11/1.png", picture(0)), "class '11' is in test/ but not in train/"),
    (lambda f: empty(f / "train"), "none under train/, expected train/<class>/"),
    (lambda f: empty(f / "test"), "none under test/, expected test/<class>/"),
    (lambda f: (f / "train/9/11.png").symlink_to("gone"), "9/11.png': a link that leads nowhere"),
    (lambda f: (f / "train/11").symlink_to("gone"), "train/11': a link that leads nowhere"),
])  # fmt: skip
def test_a_damaged_folder_is_one_line(folder, cache, damage, words):
    damage(folder)
    refuse(folder, words, cache)


def test_files_and_links_beside_the_images_of_a_tar_are_not_read(folder, tmp_path):
    path = tmp_path / "toys.tar.gz"
    (folder / "README").write_bytes(b"no image")
    (folder / "latest").symlink_to("/elsewhere")
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        tar.add(folder, ".")
    check(load(str(path)))


def test_a_file_packed_twice_counts_once_as_it_was_last(folder, tmp_path):
    path = pack(folder, tmp_path / "toys.tar", "w")
    save(tmp_path / "new.png", picture(50))
    with tarfile.open(path, "a") as tar:
        tar.add(tmp_path / "new.png", "train/9/2.png")
    data = load(str(path))
    np.testing.assert_array_equal(data.train.images[0], picture(50))
    assert len(data.train.images) == 4


def test_two_folders_of_images_in_a_tar(folder, tmp_path, cache):
    path = tmp_path / "toys.tar"
    with tarfile.open(path, "w") as tar:
        tar.add(folder, "new/toys")
        tar.add(folder, "old/toys")
    refuse(path, "some are below 'new/toys', others below 'old/toys'", cache)
