"""CIFAR-10's files, rebuilt small as the official ones are: protocol 2 as Python 2 wrote it."""

import hashlib
import io
import pickle
import tarfile

import numpy as np
import pytest
from hostile import Evil

from chainer_jo.data import cifar10, source
from chainer_jo.errors import UserError

PER_BATCH = 20

pytestmark = pytest.mark.usefixtures("cache")


def load(spec):
    return source.find(spec).load()


class Python2Pickler(pickle._Pickler):
    """Strings and bytes both as BINSTRING."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_string(self, text):
        raw = text.encode("latin-1") if isinstance(text, str) else text
        self.write(pickle.BINSTRING + len(raw).to_bytes(4, "little") + raw)
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = save_string


def dump(content):
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(content)
    return stream.getvalue()


def batch(seed):
    rng = np.random.default_rng(seed)
    return {
        "batch_label": f"batch {seed}",
        "labels": [int(k) for k in rng.permutation(np.arange(PER_BATCH) % 10)],
        "data": rng.integers(256, size=(PER_BATCH, 3072), dtype=np.uint8),
        "filenames": [f"image_{i}.png" for i in range(PER_BATCH)],
    }


BATCHES = {f"data_batch_{i}": batch(i) for i in range(1, 6)} | {"test_batch": batch(6)}
FILES = {name: dump(content) for name, content in BATCHES.items()}
FILES["batches.meta"] = dump({"num_cases_per_batch": PER_BATCH, "label_names": [*cifar10.CLASSES]})
PIXELS = np.stack([b["data"] for b in BATCHES.values()])
LABELS = np.array([b["labels"] for b in BATCHES.values()])


@pytest.fixture(autouse=True)
def official(monkeypatch):
    """Makes these images the official ones."""
    binary = np.concatenate([LABELS[:, :, None], PIXELS], 2).astype(np.uint8)
    sums = [hashlib.md5(part.tobytes()).hexdigest() for part in binary]
    monkeypatch.setattr(cifar10, "_BATCHES", dict(zip(BATCHES, sums, strict=True)))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cifar-10-batches-py"
    path.mkdir()
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    (path / "readme.html").write_text("<html></html>")
    return path


@pytest.fixture
def archive(folder, monkeypatch):
    path = folder.parent / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, folder.name)
    monkeypatch.setattr(cifar10, "MD5", hashlib.md5(path.read_bytes()).hexdigest())
    return path


def check(data):
    """The files keep a whole red plane, then green, then blue, row by row."""
    assert data.name == "cifar10" and data.class_names == cifar10.CLASSES
    for part, which in ((data.train, slice(5)), (data.test, slice(5, 6))):
        images = PIXELS[which].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(part.images, images)
        np.testing.assert_array_equal(part.true_labels, LABELS[which].ravel())


def test_folder(folder):
    check(load(str(folder)))
    check(load(str(folder.parent)))


def test_folder_as_python_3_writes_it(folder):
    for name, content in BATCHES.items():
        (folder / name).write_bytes(pickle.dumps(content, 4))
    check(load(str(folder)))


def test_archive_and_download(folder, archive, cache, monkeypatch):
    names = [source.find(str(spec)).name for spec in ("cifar10", folder, folder.parent, archive)]
    assert names == ["cifar10"] * 4 and not cache.exists()
    check(load(str(archive)))
    monkeypatch.setattr(cifar10, "URL", archive.as_uri())
    check(load("cifar10"))
    archive.unlink()
    check(load("cifar10"))


def test_another_file_than_expected_is_not_kept(archive, monkeypatch):
    monkeypatch.setattr(cifar10, "URL", archive.as_uri())
    whole = archive.read_bytes()
    archive.write_bytes(whole[:-1])
    with pytest.raises(UserError, match=f"md5 [0-9a-f]{{32}}, expected {cifar10.MD5}"):
        load("cifar10")
    with pytest.raises(UserError, match=r"cifar-10-python\.tar\.gz': md5 .*damaged"):
        load(str(archive))
    archive.write_bytes(whole)
    check(load("cifar10"))


def test_no_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "URL", (tmp_path / "absent.tar.gz").as_uri())
    with pytest.raises(UserError, match=r"absent\.tar\.gz: .*expected a connection.*--data"):
        load("cifar10")


@pytest.mark.parametrize("name", ["data_batch_3", "test_batch"])
@pytest.mark.parametrize("change, words", [
    (None, "is missing, expected all"),
    (b"", "cannot be read .* expected the official file"),
    (FILES["test_batch"][:-9], "cannot be read .* expected the official file"),
    (b"\x80\x04\x8c\x01\n\x8c\x01\n\x93.", "cannot be read .* expected the official file"),
    (dump(BATCHES["data_batch_1"]), "cannot be read .images and labels with md5"),
    (dump({**BATCHES["test_batch"], "labels": [0] * PER_BATCH}), "cannot be read .images and lab"),
    (dump({**BATCHES["test_batch"], "data": "text"}), "cannot be read"),
])  # fmt: skip
def test_a_file_that_is_missing_or_has_other_content(folder, name, change, words):
    (folder / name).unlink()
    if change is not None:
        (folder / name).write_bytes(change)
    with pytest.raises(UserError, match=f"{name} {words}") as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_runs_nothing(folder, protocol):
    content = pickle.dumps({"batch_label": Evil(folder / "made")}, protocol)
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(UserError, match="data_batch_1 cannot be read"):
        load(str(folder))
    assert not (folder / "made").exists()
    pickle.loads(content)  # which shows that the attack is real
    assert (folder / "made").exists()
