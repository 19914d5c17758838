"""CIFAR-10 as JPEG is made the same every time."""

import io

import cifar10_jpeg
import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from chainer_jo.data import cifar10, image_folder
from chainer_jo.data.labelled_data import clean_data

NAMES = ("cat", "dog", "frog")
pytestmark = pytest.mark.usefixtures("cache")


def smooth(n, seed):
    """Images that JPEG keeps well: blurred noise."""
    rng = np.random.default_rng(seed)
    small = [Image.fromarray(rng.integers(256, size=(4, 4, 3), dtype=np.uint8)) for _ in range(n)]
    return np.stack([np.asarray(image.resize((32, 32), Image.BICUBIC)) for image in small])


@pytest.fixture
def data(monkeypatch):
    labels = [np.arange(n, dtype=np.int32)[::-1] % 3 for n in (30, 9)]
    made = clean_data("cifar10", smooth(30, 0), labels[0], smooth(9, 1), labels[1], NAMES)
    monkeypatch.setattr(cifar10, "load_archive", lambda path: made)
    return made


@pytest.mark.parametrize("ending", (".tar", ".tar.xz"))
def test_the_tar_is_read_as_the_same_images_slightly_degraded(data, tmp_path, ending, capsys):
    path = tmp_path / f"cifar10-jpeg{ending}"
    cifar10_jpeg.main(["archive.tar.gz", str(path)])
    read = image_folder.load(path, "cifar10-jpeg")
    assert f"39 images, fingerprint {read.fingerprint()}" in capsys.readouterr().out
    assert read.class_names == NAMES
    for k in range(3):
        ours = read.train.images[read.train.labels == k].astype(int)
        given = data.train.images[data.train.labels == k].astype(int)
        assert ours.shape == given.shape
        assert 0 < np.abs(ours - given).mean() < 10  # in the archive's order, and lossy


def test_names_quality_and_subsampling(data):
    made = dict(cifar10_jpeg.jpeg_files(data))
    assert list(made)[:2] == ["train/cat/0000.jpg", "train/cat/0001.jpg"]
    assert list(made)[-1] == "test/frog/0002.jpg"
    reference = io.BytesIO()
    Image.new("RGB", (32, 32)).save(reference, "JPEG", quality=75)
    image = Image.open(io.BytesIO(made["train/cat/0000.jpg"]))
    assert image.quantization == Image.open(reference).quantization
    assert JpegImagePlugin.get_sampling(image) == 2  # 4:2:0


def test_the_same_images_give_the_same_tar(data, tmp_path, capsys):
    for name in ("a.tar.xz", "b.tar.xz"):
        cifar10_jpeg.write(data, tmp_path / name)
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    with pytest.raises(SystemExit, match="^2$"):
        cifar10_jpeg.main(["archive.tar.gz", "x.zip"])
    assert ".tar" in capsys.readouterr().err
