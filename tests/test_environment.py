"""The environment of a command: full disks, permissions, devices."""

import contextlib
import os
import sys
from pathlib import Path

import processes
import pytest
from own_images import BY_FEATURES, make, one_line, run

from chainer_jo import files
from chainer_jo.relabel.read import label_table

CHAINER_JO = [sys.executable, "-c", "from chainer_jo.relabel.cli import main; main()"]
RELABEL = [*CHAINER_JO, "relabel"]


def under(command, streams, code=0, **options):
    """Runs a command in a shell, with ``streams`` redirected."""
    return processes.run(["sh", "-c", f'exec "$@" {streams}', "sh", *command], code, **options)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    return processes.environment(CHAINER_DATASET_ROOT=tmp_path_factory.mktemp("cache"))


def by_features(data, out):
    features = ("--features", data / "features.npz", *BY_FEATURES)
    return [*RELABEL, data / "labels.csv", *features, "--out", out]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_a_full_disk_of_the_output_is_one_line_and_of_a_log_ends_no_work(data, cached, tmp_path):
    (line,) = under(
        ["env", "-u", "PYTHONUNBUFFERED", *RELABEL, "-h"], ">/dev/full", 2
    ).stderr.splitlines()
    assert line.startswith("error: No space left on device, expected free disk space")
    under(by_features(data, tmp_path), "2>/dev/full", env=cached)
    assert {"labels.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}


def test_help_and_refused_flags_import_neither_chainer_nor_scipy_nor_matplotlib():
    """They take a second. One process for all, in which nothing may stay behind."""
    program = """\
import sys
from chainer_jo.relabel.cli import main
for words in ("", "--help", "relabel --help", "predict --help", "features --help",
              "example --help", "relabel x --out y --flap", "relabel x --out y --epochs 0"):
    try:
        main(words.split())
    except SystemExit:
        print("loaded:", *{"chainer", "scipy", "matplotlib"} & sys.modules.keys())
from chainer.backends import cuda
print("loaded:", *{"chainer", "scipy", "matplotlib"} & sys.modules.keys())
"""
    lines = processes.run([sys.executable, "-c", program]).stdout.splitlines()
    loaded = [line.split()[1:] for line in lines if line.startswith("loaded:")]
    assert loaded[:-1] == 8 * [[]] and "chainer" in loaded[-1]


@pytest.fixture
def umask():
    """`os.umask`, as before at the end of the test."""
    before = os.umask(0)
    yield os.umask
    os.umask(before)


def test_a_file_that_was_readable_by_all_is_not_once_it_is_written_again(tmp_path, umask):
    """Neither the file before nor a name that is taken decides."""
    path = tmp_path / "file"
    for mode in (0o644, 0o600):
        umask(0o666 ^ mode)
        files.write_text(path, "x")
        assert path.stat().st_mode & 0o777 == mode
    with contextlib.suppress(ZeroDivisionError):
        files.write(path, lambda file: 1 / 0)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and path.read_text() == "x"


@pytest.mark.parametrize("flag", ["DATA", "--true-labels", "--accept", "--features"])
def test_a_file_that_may_have_no_end_is_not_read(flag, data, tmp_path, capsys):
    """Of a device all of the memory would be filled; a pipe that nobody writes to is no better."""
    os.mkfifo(tmp_path / "pipe")
    assert not label_table.is_metadata(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe")):
        named = {"DATA": data / "labels.csv", "--out": tmp_path / "out", flag: path}
        words = [word for pair in named.items() for word in pair if word != "DATA"]
        assert run("relabel", *words, *BY_FEATURES) == 2
        line = one_line(capsys)
        assert path in line and "not a regular file" in line
