"""`chainer-jo predict`: networks that relabel trained, on images and on features."""

import csv
import os

import numpy as np
import pytest
from own_images import one_line, read, run
from processes import names_in_utf8

pytestmark = pytest.mark.usefixtures("own_set")


def test_predict_from_features(by_features, own_set, tmp_path, capsys):
    assert run("predict", by_features, "--features", own_set / "features.npz") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    true = {row["path"]: row["label"] for row in read(own_set / "true.csv")}
    assert np.mean([row["label"] == true[row["path"]] for row in rows]) > 0.9
    assert run("predict", by_features, own_set / "images") == 2
    assert "expected --features FILE.npz" in capsys.readouterr().err
    assert run("predict", by_features, "--features", own_set / "features.npz", "one.png") == 2
    assert "IMAGE 'one.png': expected none with --features" in one_line(capsys)
    np.savez(tmp_path / "short.npz", features=np.ones((1, 2)), paths=np.array(["a.png"]))
    assert run("predict", by_features, "--features", tmp_path / "short.npz") == 2
    assert "short.npz': 2 numbers each, expected 64" in one_line(capsys)


def test_predict_takes_from_a_folder_what_relabel_does(corrected, own_set, tmp_path, capsys):
    """A Mac leaves hidden files that are called as images."""
    image = (own_set / "images" / "00, é.png").read_bytes()
    for name in ("b.png", "a/c.PNG", "d.txt", "._b.png", ".hidden/e.png", "__MACOSX/f.png"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name.startswith((".", "__")) else image)
    assert run("predict", corrected, tmp_path / "folder") == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    paths = [str(tmp_path / "folder" / name) for name in ("a/c.PNG", "b.png")]
    assert [row["path"] for row in rows] == paths
    assert run("predict", corrected, paths[1], tmp_path / "folder" / "a") == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["path"] for row in rows] == paths[::-1]
    (tmp_path / "empty").mkdir()
    assert run("predict", corrected, tmp_path / "empty") == 2
    assert f"images in '{tmp_path / 'empty'}': none, expected files" in one_line(capsys)
    assert run("predict", corrected) == 2
    assert "IMAGE: none given" in one_line(capsys)


@names_in_utf8
@pytest.mark.parametrize("named", ["folder", "image"])
def test_predict_refuses_names_that_its_table_cannot_have(
    named, corrected, own_set, tmp_path, capsys
):
    """The terminal may take only what is UTF-8."""
    path = tmp_path / "folder" / os.fsdecode(b"\xff.png")
    path.parent.mkdir()
    path.write_bytes((own_set / "images" / "00, é.png").read_bytes())
    assert run("predict", corrected, path if named == "image" else path.parent) == 2
    assert "expected a name in UTF-8" in one_line(capsys)


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04", "deep"])
def test_predict_without_a_network(content, tmp_path, capsys):
    """Others: test_arrays_of_others.py."""
    if content == "deep":
        np.savez(tmp_path / "model.npz", **{"about": "[" * 50_000, "0/weights/W": np.ones(1)})
    elif content is not None:
        (tmp_path / "model.npz").write_bytes(content)
    assert run("predict", tmp_path, "image.png") == 2
    assert "expected the folder that chainer-jo relabel wrote" in one_line(capsys)
    assert run("predict", tmp_path / "nowhere", "image.png") == 2
    line = one_line(capsys)
    assert "nowhere': no such folder, expected" in line and line.count("nowhere") == 1
