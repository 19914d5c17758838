"""Files that are kept: what they say of themselves, and file systems that lack a function."""

import errno
import mmap
import os
from contextlib import nullcontext

import numpy as np
import pytest

from chainer_jo import files
from chainer_jo.data import array_cache
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.reproduction.running.store import PACKED, RunStore


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """Two cached blocks: what reads them, their files, and how many blocks were computed."""
    monkeypatch.setattr(array_cache, "cache", lambda: tmp_path)
    names, computed = ["a.npz", "b.npz"], []

    def compute(i, name):
        computed.append(i)
        return np.arange(6, dtype=np.float32).reshape(2, 3) + i

    def read():
        found = array_cache.cached_blocks(names, lambda: compute, Progress("blocks", "rows", 4))
        np.testing.assert_array_equal(np.concatenate(found)[:, 0], [0, 3, 1, 4])
        return computed

    assert read() == read() == [0, 1]
    return read, tmp_path / names[0], tmp_path / names[1]


def test_exchanged_blocks_are_computed_again(blocks):
    read, a, b = blocks
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(content)
    assert read() == read() == [0, 1, 0, 1]


@pytest.mark.parametrize("change", [
    lambda block: block + 1, lambda block: np.roll(block, 1), lambda block: block[:1],
    lambda block: block.astype(int), lambda block: block.reshape(3, 2), lambda block: block * 1j,
    lambda block: np.array("text"),
])  # fmt: skip
def test_a_changed_block_is_computed_again(blocks, change):
    read, a, _ = blocks
    with np.load(a) as archive:
        arrays = dict(archive)
    np.savez(a, **arrays | {"block": change(arrays["block"])})
    assert read() == [0, 1, 0]
    a.write_bytes(a.read_bytes()[:-300])
    assert read() == read() == [0, 1, 0, 0]


@pytest.mark.parametrize("damage", [
    lambda kept: kept[:-300] + bytes([kept[-300] ^ 64]) + kept[-299:], lambda kept: b"",
    lambda kept: kept.replace(b"(2, 3), }", b"(2, 3(, }"), lambda kept: kept[:150],
    lambda kept: kept.replace(b"(2, 3), }" + 8 * b" ", b"(2000000, 30000), }"),
], ids=["bit", "empty", "header", "truncated", "length"])  # fmt: skip
def test_a_damaged_block_is_computed_again(blocks, damage):
    read, a, _ = blocks
    read()
    whole = a.read_bytes()
    a.write_bytes(damage(whole))
    assert a.read_bytes() != whole
    assert read() == read() == [0, 1, 0]


def test_a_file_system_without_fsync_is_written_to_and_a_full_one_is_told(tmp_path, monkeypatch):
    """CIFS and FUSE may have none."""
    for error in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.ENOSPC):
        monkeypatch.setattr(os, "fsync", lambda file, error=error: fail(error))
        path = tmp_path / str(error)
        refused = pytest.raises(UserError, match="cannot write .*No space left")
        with refused if error == errno.ENOSPC else nullcontext():
            files.write_text(path, "text")
        assert path.exists() == (error != errno.ENOSPC)
    assert len(list(tmp_path.iterdir())) == 3


def fail(error):
    raise OSError(error, os.strerror(error))


def test_an_array_is_read_where_files_are_not_mapped(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.arange(3))
    monkeypatch.setattr(mmap, "mmap", lambda *args, **kwargs: fail(errno.ENODEV))
    np.testing.assert_array_equal(files.load_mapped(tmp_path / "a.npy"), np.arange(3))


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_in_the_place_of_kept_files_are_refused(tmp_path, kind):
    """They have no end."""
    path = tmp_path / "result.json"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    with pytest.raises(UserError, match="result.json: not readable as JSON .*not a regular file"):
        files.read_json(path, missing=None)
    with pytest.raises(OSError, match="not a regular file"):
        files.arrays(path)
    with pytest.raises(OSError, match="not a regular file"):
        files.load_mapped(path)
    path.rename(tmp_path / PACKED)
    with pytest.raises(UserError, match=f"{PACKED}: damaged .*not a regular file"):
        RunStore(tmp_path).results()
