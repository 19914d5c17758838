"""CIFAR-10's files, rebuilt small as the official ones are: protocol 2 as Python 2 wrote it."""

import hashlib
import io
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest
from hostile import Evil, memory_below
from processes import ROOT

from chainer_jo import files
from chainer_jo.data import cifar10, source
from chainer_jo.data.labelled_data import clean_data
from chainer_jo.errors import UserError

OFFICIAL = cifar10.FINGERPRINT
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PER_BATCH = 20

pytestmark = pytest.mark.usefixtures("cache")


def load(spec):
    return source.find(spec).load()


class Python2Pickler(pickle._Pickler):
    """Strings and bytes both as BINSTRING, modules by their names in the NumPy of then."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_string(self, text):
        raw = text.encode("latin-1") if isinstance(text, str) else text
        self.write(pickle.BINSTRING + len(raw).to_bytes(4, "little") + raw)
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = save_string

    def save_global(self, obj, name=None):
        module = obj.__module__.replace("numpy._core", "numpy.core")
        self.write(pickle.GLOBAL + f"{module}\n{obj.__name__}\n".encode())
        self.memoize(obj)

    dispatch[type] = save_global


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
FILES["batches.meta"] = dump({"num_cases_per_batch": PER_BATCH, "label_names": NAMES})


@pytest.fixture(autouse=True)
def official(monkeypatch):
    """Makes these images the official ones. The files keep a whole red plane, then green, then
    blue, row by row."""
    parts = [
        np.stack(np.split(b["data"], 3, axis=1), 2).reshape(-1, 32, 32, 3) for b in BATCHES.values()
    ]
    labels = [np.array(b["labels"], np.int32) for b in BATCHES.values()]
    train = np.concatenate(parts[:5]), np.concatenate(labels[:5])
    data = clean_data("cifar10", *train, parts[5], labels[5], tuple(NAMES))
    monkeypatch.setattr(cifar10, "FINGERPRINT", data.fingerprint())


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
    assert data.name == "cifar10" and data.fingerprint() == cifar10.FINGERPRINT


def test_committed_results_are_of_the_official_images():
    committed = files.read_json(ROOT / "results/reference/paper-mixed/data.json")
    assert committed == {"data": "cifar10", "fingerprint": OFFICIAL}


def test_folder(folder):
    check(load(str(folder)))
    check(load(str(folder.parent)))


@pytest.mark.parametrize("keys", [str, str.encode])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_folder_as_python_3_writes_it(folder, protocol, keys):
    contents = {**BATCHES, "batches.meta": {"label_names": [keys(name) for name in NAMES]}}
    for name, content in contents.items():
        content = {keys(key): value for key, value in content.items()}
        (folder / name).write_bytes(pickle.dumps(content, protocol))
    check(load(str(folder)))


@pytest.mark.parametrize("file, change", [
    ("data_batch_2", lambda b: b["data"].__setitem__((3, 5), b["data"][3, 5] ^ 1)),
    ("test_batch", lambda b: b["labels"].__setitem__(7, (b["labels"][7] + 1) % 10)),
    ("batches.meta", lambda m: m["label_names"].__setitem__(0, "aeroplane")),
])  # fmt: skip
def test_other_images_than_the_official_ones_have_another_name(folder, caplog, file, change):
    content = pickle.loads((folder / file).read_bytes(), encoding="latin-1")
    content["data"] = np.array(content.get("data", 0))
    change(content)
    (folder / file).write_bytes(dump(content))
    found = source.find(str(folder))
    data = found.load()
    assert found.name == data.name == f"cifar10-{data.fingerprint()[:8]}"
    assert caplog.messages == [
        f"{folder}: not the official CIFAR-10, or damaged; its results are called {data.name}"
    ]


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


@pytest.mark.parametrize("name, change, words", [
    ("data_batch_3", None, "data_batch_3 is missing"),
    ("test_batch", None, "test_batch is missing"),
    ("batches.meta", None, "batches.meta is missing"),
    ("batches.meta", {"label_names": ["\ud800", *NAMES[1:]]}, "batches.meta cannot be .*not UTF-8"),
    ("test_batch", {"data": np.zeros((PER_BATCH, 3000), np.uint8)}, "test_batch cannot be read"),
    ("test_batch", {"data": "text"}, "test_batch cannot be read"),
    ("test_batch", {"labels": ["x"] * PER_BATCH}, "test_batch cannot be read"),
])  # fmt: skip
def test_a_file_that_is_missing_or_has_other_content(folder, name, change, words):
    (folder / name).unlink()
    if change:
        dumped = pickle.dumps if name == "batches.meta" else dump
        (folder / name).write_bytes(dumped(batch(6) | change))
    with pytest.raises(UserError, match=words):
        load(str(folder))


def forged(labels=b"]", data=b"N"):
    return b"\x80\x03(Vlabels\n" + labels + b"Vdata\n" + data + b"d."


#: Objects, whose flags say that they are none: their bytes are taken for pointers.
OBJECTS = (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR(I1\n(I4\nt"
    b"cnumpy\ndtype\n(VO8\nI00\nI01\ntR(I3\nV|\nNNNI-1\nI-1\nI0\ntbI00\nB\x20\0\0\0"
    + b"A" * 32
    + b"tb"
)
DEEP = 100_000

FORGED = {
    "labels that are objects": forged(labels=OBJECTS),
    "a huge array": forged(data=b"cnumpy\nndarray\n((L100000000000L\ntVu1\ntR"),
    "a changed class": forged(data=b"cnumpy\ndtype\nVu1\nb"),
    "a number of labels": forged(labels=b"L100000000000L\n"),
    "nested lists": b"]" * DEEP + b"a" * (DEEP - 1) + b".",
    "object 33,554,432": forged(data=b"Nr" + struct.pack("<I", 1 << 25)),
    "bytes without end": forged(data=b"N\x8e" + struct.pack("<Q", 1 << 60)),
    "tuples in tuples": b"\x80\x02}" + b"K\0" + b"\x85" * 200_000 + b"Ns.",
    "nothing, many times": b"\x80\x02" + b"N0" * 10_000_000 + b"}.",
    "numbers of one hash": b"\x80\x02}("
    + b"".join(
        b"\x8a\x0a" + (k * ((1 << 61) - 1)).to_bytes(10, "little") + b"N" for k in range(40_000)
    )
    + b"u.",
    "a name of two lines": b"\x80\x04\x8c\x01\n\x8c\x01\n\x93.",
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_pickle_is_refused_in_one_line_and_little_memory(folder, what):
    (folder / "data_batch_1").write_bytes(FORGED[what])
    refused = pytest.raises(UserError, match="data_batch_1 cannot be read")
    with memory_below(1 << 27), refused as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)


def test_no_more_is_read_than_a_batch_may_have(folder):
    """A gigabyte of bytes, on a disk that keeps no zeros."""
    (folder / "data_batch_1").write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", 1 << 30))
    os.truncate(folder / "data_batch_1", (1 << 30) + 100)
    with memory_below(1 << 28), pytest.raises(UserError, match="data_batch_1 cannot be read"):
        load(str(folder))


@pytest.mark.parametrize("protocol", [2, 4])
def test_pickle_that_wants_more_than_arrays(folder, protocol):
    content = pickle.dumps({"batch_label": Evil(folder / "made")}, protocol)
    (folder / "data_batch_1").write_bytes(content)
    with pytest.raises(UserError, match=r"data_batch_1 cannot be read \(it asks for '\w+\.mkdir'"):
        load(str(folder))
    assert not (folder / "made").exists()
    pickle.loads(content)  # which shows that the attack is real
    assert (folder / "made").exists()
