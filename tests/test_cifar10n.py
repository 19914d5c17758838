"""Labels of people from CIFAR-10_human.pt, by a stand-in: which files are read."""

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


def zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data.pkl", content)
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


GOOD = zipped(pickle.dumps(arrays(), 2))


@pytest.mark.parametrize("true", [TRUE[::-1], TRUE[:-1], np.roll(TRUE, 1)])
def test_images_in_another_order_are_refused(read, true):
    with pytest.raises(UserError, match="clean_label differs from the labels of the data"):
        read(GOOD, true)


def test_only_the_published_file_is_opened(tmp_path):
    path = tmp_path / "human.pt"
    with pytest.raises(UserError, match="No such file or directory, expected CIFAR-10_human.pt"):
        cifar10n.read(path, TRUE)
    for raw, size in (
        (GOOD, f"{len(GOOD):,} bytes"),
        (bytes(cifar10n.SIZE), "2,401,007 bytes, SHA-256 "),
        (bytes(cifar10n.SIZE + 1), "more bytes"),
    ):
        path.write_bytes(raw)
        with pytest.raises(UserError, match=f"human.pt: {size}.*expected 2,401,007 bytes, 873e69"):
            cifar10n.read(path, TRUE)
