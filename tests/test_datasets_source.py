"""What --data takes, and the names it gives."""

import sys
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from chainer.dataset import download
from processes import environment, run

from chainer_jo.data import digits, source
from chainer_jo.errors import UserError

CIFAR10_JPEG = Path(__file__).parents[2] / "shared/data/cifar10-jpeg.tar.xz"
needs_cifar10_jpeg = pytest.mark.skipif(
    not CIFAR10_JPEG.exists(), reason=f"real CIFAR-10 images are not there: {CIFAR10_JPEG}"
)


@pytest.mark.parametrize("content", [None, b"", b"no tar", bytes(2000)])
def test_a_file_that_is_not_there_or_no_tar(tmp_path, content):
    words = "No such file .*expected 'digits', 'cifar10'" if content is None else ""
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=f"file': {words}"):
        source.find(str(tmp_path / "file")).load()


@pytest.mark.parametrize(("folder", "name"), [
    ("pets", "pets"),
    ("pets.v2", "pets.v2"),
    ("cifar10", "cifar10-images"),
    ("digits", "digits-images"),
])  # fmt: skip
def test_images_never_pass_for_the_official_data(tmp_path, folder, name):
    (tmp_path / folder / "train").mkdir(parents=True)
    assert source.find(str(tmp_path / folder)).name == name


def test_folder_named_by_the_way_to_it(tmp_path, monkeypatch):
    (tmp_path / "pets/train").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "pets")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {source.find(spec).name for spec in (".", "../pets/", "~/pets")} == {"pets"}


@needs_cifar10_jpeg
def test_real_cifar10_images(cache, tmp_path):
    """Every hundredth."""
    path = tmp_path / CIFAR10_JPEG.name
    with tarfile.open(CIFAR10_JPEG, "r|xz") as whole, tarfile.open(path, "w:xz") as part:
        for member in islice(whole, 0, None, 100):
            part.addfile(member, whole.extractfile(member))
    data = source.find(str(path)).load()
    assert data.name == "cifar10-jpeg"
    assert data.class_names[0] == "airplane" and data.class_names[9] == "truck"
    assert data.train.images.shape == (500, 32, 32, 3)
    assert data.test.images.shape == (100, 32, 32, 3)
    assert np.bincount(data.train.labels).tolist() == [50] * 10
    assert np.bincount(data.test.labels).tolist() == [10] * 10
    # The means of CIFAR-10's channels, known from the literature: 0.4914, 0.4822, 0.4465.
    means = data.train.images.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=0.02)


def test_cifar10_as_jpeg_can_be_named_but_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = source.find("cifar10-jpeg")
    assert found.name == "cifar10-jpeg"
    with pytest.raises(UserError, match="expected its path; python -m"):
        found.load()
    (tmp_path / "cifar10-jpeg").mkdir()  # a folder of that name is meant, and has nothing in it
    with pytest.raises(UserError, match="unknown folder"):
        source.find("cifar10-jpeg")


def test_digits_are_decoded_once_and_wherever_nothing_can_be_kept(tmp_path, monkeypatch):
    """A worker that finds them decoded starts without scikit-learn, which takes a second."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path / "file" / "cache"))
    kept_nowhere = digits.load().fingerprint()
    monkeypatch.setattr(download, "_dataset_root", str(tmp_path / "cache"))
    assert digits.load().fingerprint() == kept_nowhere
    said = run(
        [sys.executable, "-c", "import sys; from chainer_jo.data import digits; "
         "from chainer_jo.reproduction.running import worker; print(digits.load().fingerprint(), "
         "'sklearn' in sys.modules)"],
        env=environment(CHAINER_DATASET_ROOT=tmp_path / "cache"),
    ).stdout  # fmt: skip
    assert said.split() == [kept_nowhere, "False"]
