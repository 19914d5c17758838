"""What --data takes, and the names it gives."""

import sys

import pytest
from chainer.dataset import download
from processes import environment, run

from chainer_jo.data import digits, source
from chainer_jo.errors import UserError


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
    ("clothing1m", "clothing1m-images"),
])  # fmt: skip
def test_images_never_pass_for_the_official_data(tmp_path, folder, name):
    (tmp_path / folder / "train").mkdir(parents=True)
    assert source.find(str(tmp_path / folder)).name == name


def test_folder_named_by_the_way_to_it(tmp_path, monkeypatch):
    (tmp_path / "pets/train").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "pets")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {source.find(spec).name for spec in (".", "../pets/", "~/pets")} == {"pets"}


def test_cifar10_as_jpeg_can_be_named_but_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = source.find("cifar10-jpeg")
    assert found.name == "cifar10-jpeg"
    with pytest.raises(UserError, match="expected its path; make it by tools/cifar10_jpeg.py"):
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
