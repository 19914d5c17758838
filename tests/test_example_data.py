"""The example of wrong labels that can be written anywhere."""

import os

import numpy as np
import pytest

from chainer_jo.data.decoding import decode
from chainer_jo.errors import UserError
from chainer_jo.relabel import example
from chainer_jo.relabel.read.labelled_images import labels_of, read_sets


@pytest.mark.usefixtures("cache")
def test_the_example_is_read_and_thirty_percent_of_its_labels_are_wrong(tmp_path):
    wrong = example.write(tmp_path / "a" / "digits")
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["digits"]
    for path in (tmp_path / "a", tmp_path / "a" / "digits" / "labels.csv"):
        with pytest.raises(UserError, match=f"folder '{path}': exists, expected"):
            example.write(path)
    images = read_sets(str(tmp_path / "a" / "digits" / "labels.csv")).train
    true = labels_of(str(tmp_path / "a" / "digits" / "true_labels.csv"), images)
    assert len(images) == 1797 and images.class_names == tuple("0123456789")
    assert (images.given != true).sum() == wrong
    assert wrong / len(images) == pytest.approx(0.3, abs=0.01)
    pixels = np.stack([decode(file, 8, 8) for file in images.files()])
    assert 0 < pixels.mean() < 255
    # The same class looks alike: the nearest of the others has the same true label.
    flat = pixels[:200, ..., 0].reshape(200, -1).astype(float)
    distances = ((flat[:, None] - flat) ** 2).sum(axis=2) + 1e9 * np.eye(200)
    nearest = true[:200][distances.argmin(axis=1)]
    assert (nearest == true[:200]).mean() > 0.85


def test_an_empty_folder_may_be_the_working_one_or_a_link(tmp_path, monkeypatch):
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    monkeypatch.chdir(tmp_path / "here")
    example.write(".")
    assert sorted(os.listdir()) == ["images", "labels.csv", "true_labels.csv"]
    example.write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "elsewhere" / "labels.csv").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "here", "link"]
