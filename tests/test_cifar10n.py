"""Labels of people from CIFAR-10_human.pt, by a stand-in: which files are read; no function that a
file names is called."""

import hashlib
import io
import pickle
import zipfile

import numpy as np
import pytest

from chainer_jo.data import cifar10n
from chainer_jo.errors import UserError

N = 40
TRUE = np.arange(N) % 10
NAMES = ["clean_label", "aggre_label", "worse_label", "random_label1"]
NAMES += ["random_label2", "random_label3"]


def arrays(**other):
    return {name: (TRUE + i) % 10 for i, name in enumerate(NAMES)} | other


def zipped(content, name="archive/data.pkl"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/version", "3\n")
        archive.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads a file of these bytes as if it were the published one."""

    def call(raw, true=TRUE):
        monkeypatch.setattr(cifar10n, "SIZE", len(raw))
        monkeypatch.setattr(cifar10n, "SHA256", hashlib.sha256(raw).hexdigest())
        (tmp_path / "human.pt").write_bytes(raw)
        return cifar10n.read(tmp_path / "human.pt", true)

    return call


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_label_sets_are_read_by_name(read, module):
    pickled = pickle.dumps(arrays(), 2).replace(b"numpy._core.multiarray", module)
    found = read(zipped(pickled))
    assert list(found) == ["aggre", "worse", "random1", "random2", "random3"]
    for i, labels in enumerate(found.values(), 1):
        np.testing.assert_array_equal(labels, (TRUE + i) % 10)
        assert labels.dtype == np.int32


class Calls:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


def spoil():
    raise AssertionError("a function that the file names was called")


GOOD = pickle.dumps(arrays(), 2)
PICKLES = {
    "no pickle": b"no pickle",
    "nothing": b"",
    "cut": GOOD[:-40],
    "a list": pickle.dumps([1, 2], 2),
    "three": pickle.dumps(3, 2),
    "no sets": pickle.dumps({"clean_label": TRUE}, 2),
    "a set is missing": pickle.dumps({k: v for k, v in arrays().items() if k != NAMES[2]}, 2),
    "a list of labels": pickle.dumps(arrays(worse_label=TRUE.tolist()), 2),
    "text": pickle.dumps(arrays(worse_label="01"), 2),
    "an array of objects": pickle.dumps(arrays(worse_label=np.array(["a", None])), 2),
    "by columns": pickle.dumps(arrays(worse_label=np.asfortranarray(np.eye(4, dtype=int))), 2),
    "three bytes": pickle.dumps(arrays(worse_label=np.uint8([1, 2, 3])), 2),
    "a call": pickle.dumps(Calls(spoil), 2),
    "a call in a set": pickle.dumps(arrays(worse_label=Calls(spoil)), 2),
    "a call as a name": pickle.dumps(arrays() | {"more": Calls(spoil)}, 2),
    "eval": pickle.dumps(arrays(worse_label=Calls(eval, "1/0")), 2),
    "getattr": pickle.dumps(arrays(worse_label=Calls(getattr, TRUE, "size")), 2),
    "exit": pickle.dumps(Calls(exit), 2),
    "a function of NumPy": pickle.dumps(arrays(worse_label=Calls(np.zeros, 3)), 2),
    "a large array": pickle.dumps(arrays(worse_label=Calls(np.ndarray, (1 << 40,))), 2),
    "a stored tensor": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.",
    "a persistent identifier": b"\x80\x02Pstorage\n.",
}


@pytest.mark.parametrize("pickled", PICKLES.values(), ids=PICKLES)
def test_other_pickles_are_refused(read, pickled):
    with pytest.raises(UserError, match="human.pt: cannot be read .*, expected CIFAR-10_human.pt"):
        read(zipped(pickled))


@pytest.mark.parametrize("raw", [b"", b"PK", zipped(GOOD, "data.pkl"), zipped(GOOD)[:-30], GOOD])
def test_other_archives_are_refused(read, raw):
    with pytest.raises(UserError, match="human.pt: cannot be read"):
        read(raw)


@pytest.mark.parametrize("true", [TRUE[::-1], TRUE[:-1], np.roll(TRUE, 1)])
def test_images_in_another_order_are_refused(read, true):
    with pytest.raises(UserError, match="clean_label differs from the labels of the data"):
        read(zipped(GOOD), true)


def test_only_the_published_file_is_opened(tmp_path):
    path = tmp_path / "human.pt"
    with pytest.raises(UserError, match="No such file or directory, expected CIFAR-10_human.pt"):
        cifar10n.read(path, TRUE)
    for raw, size in (
        (zipped(GOOD), f"{len(zipped(GOOD)):,} bytes"),
        (bytes(cifar10n.SIZE), "2,401,007 bytes, SHA-256 "),
        (bytes(cifar10n.SIZE + 1), "more bytes"),
    ):
        path.write_bytes(raw)
        with pytest.raises(UserError, match=f"human.pt: {size}.*expected 2,401,007 bytes, 873e69"):
            cifar10n.read(path, TRUE)
