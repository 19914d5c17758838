"""Files that are exchanged while they are read, that are no files, or that are below ``~``."""

import os
import socket
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from class_folders import images_in, pets, save
from own_images import BY_FEATURES, make, relabel
from processes import environment, run

from chainer_jo.data import array_cache, digits, image_folder, tar_members, unpacked_tar
from chainer_jo.errors import UserError
from chainer_jo.method import label_sources
from chainer_jo.relabel import command, correction
from chainer_jo.relabel.read import feature_table, image_features
from chainer_jo.relabel.read.labelled_images import read_sets

PIXELS = image_features.pixels(4)


def test_features_in_the_cache_belong_to_the_bytes_that_name_them(tmp_path, cache):
    paths = images_in(tmp_path)
    first, second = (Path(path).read_bytes() for path in paths[:2])

    def exchange(device):
        Path(paths[0]).write_bytes(second)
        return PIXELS.load(device)

    with pytest.raises(UserError, match="images: changed while it was read"):
        image_features.compute(paths, replace(PIXELS, load=exchange))
    Path(paths[0]).write_bytes(first)
    found = image_features.compute(paths, PIXELS)
    np.testing.assert_array_equal(found[:1], image_features.compute(paths[:1], PIXELS))


def relabelled(path):
    words = path.parent / "labels.csv", "--out", path.parent / "out", "--features", path
    correction.relabel(command.parse([*map(str, words)]))


def clustered(path):
    given = label_sources.LabelFiles(str(path), results=path.parent)
    noise = label_sources.Noise("pseudo", features=given.features_of("digits"))
    noise.source.labels(digits.load(), np.arange(2), noise, 0, given)


@pytest.mark.parametrize("path, module, name, read", [
    ("set.tar", tar_members, "open_tar", unpacked_tar.unpack),
    ("set.tar", tar_members, "open_tar", lambda path: image_folder.load(path, "toys")),
    ("set/train/a/1.png", image_folder, "_class_names",
     lambda path: image_folder.load(path.parents[2], "toys")),
    ("set.tar", image_features, "load_resnet50",
     lambda path: image_features.resnet50(str(path)).load("cpu")),
    ("own/features.npz", feature_table, "read_arrays", relabelled),
    ("pseudo.npz", label_sources, "read_features", clustered),
])  # fmt: skip
def test_a_file_exchanged_while_it_is_read(path, module, name, read, tmp_path, cache, monkeypatch):
    """Refused, and not kept under the name of what was there before."""
    for part in ("train/a", "train/b", "test/a", "test/b"):
        save(tmp_path / "set" / part / "1.png")
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        archive.add(tmp_path / "set", ".")
    make(tmp_path / "own")
    np.savez(tmp_path / "pseudo.npz", features=np.random.rand(len(digits.load().train), 2))
    before, function = {*filter(Path.is_dir, cache.iterdir())}, getattr(module, name)

    def meanwhile(*arguments, **options):
        (tmp_path / path).write_bytes((tmp_path / path).read_bytes() + b"\0")
        return None if name == "load_resnet50" else function(*arguments, **options)

    monkeypatch.setattr(module, name, meanwhile)
    with pytest.raises(UserError, match="changed while it was read, expected to stay"):
        read(tmp_path / path)
    assert {*filter(Path.is_dir, cache.iterdir())} == before


@pytest.mark.parametrize("kind", ["pipe", "socket", "nothing"])
def test_what_is_no_file_is_named_and_not_waited_for(kind, corrected, tmp_path, monkeypatch):
    """Also beside images whose features are in the cache."""
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    paths, env = images_in(Path("a"), 3), environment(CHAINER_DATASET_ROOT=tmp_path)
    if kind == "socket":
        socket.socket(socket.AF_UNIX).bind("9.png")
    elif kind == "pipe":
        os.mkfifo("9.png")
    words = [sys.executable, "-m", "chainer_jo", "predict", corrected, *paths]
    assert len(run(words, env=env).stdout.splitlines()) == 4
    line = run([*words, "9.png"], 2, timeout=60, env=env).stderr.splitlines()[-1]
    assert "'9.png': " in line and line.startswith("error: images: image cannot be decoded")


@pytest.mark.parametrize("root, expected", [
    ("~/jo", "home/jo"), ("", "home/.chainer/dataset"), ("jo", "jo"), ("~noone/jo", "~noone/jo"),
])  # fmt: skip
def test_the_cache_below_the_home_folder(root, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("chainer.dataset.download._dataset_root", root)
    assert array_cache.cache() == tmp_path / expected / "chainer_jo"


def test_a_user_without_a_home_folder(own_set, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", os.fspath)
    monkeypatch.setattr("chainer.dataset.download._dataset_root", "~/.chainer/dataset")
    words = ("--apply", tmp_path / "set", "--despite-doubt", *BY_FEATURES)
    assert relabel(own_set, "out", "--features", own_set / "features.npz", *words) == 0
    assert relabel(own_set, "again", "--features", "pixels") == 2
    assert "no home folder; set HOME, or CHAINER_DATASET_ROOT" in capsys.readouterr().err
    assert len(read_sets(str(pets(Path("~old")))).train) == 3 and not Path("~").exists()
