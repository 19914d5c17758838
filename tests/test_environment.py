"""What a command finds around it: closed streams, full disks, limits, permissions, -OO."""

import contextlib
import re
import sys
from pathlib import Path

import processes
import pytest
from own_images import BY_FEATURES, SHORT, make

from chainer_jo import files

RELABEL = [sys.executable, "-c", "from chainer_jo.relabel.cli import main; main()", "relabel"]
#: A shell's setting that holds for the command after it.
SHELL = ["sh", "-c", '{}; exec "$@" {}', "sh"]


def under(command, setting=":", streams="", code=0, **options):
    """Runs a command in a shell after ``setting``, with ``streams`` redirected."""
    shell = [*SHELL[:2], SHELL[2].format(setting, streams), SHELL[3]]
    return processes.run([*shell, *command], code, **options)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    return processes.environment(CHAINER_DATASET_ROOT=tmp_path_factory.mktemp("cache"))


def by_features(data, out):
    features = ("--features", data / "features.npz", *BY_FEATURES)
    return [*RELABEL, data / "labels.csv", *features, "--out", out]


@pytest.mark.parametrize(
    "streams", [">&-", "2>&-", "<&- >&- 2>&-", pytest.param("2>/dev/full", id="full")]
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_streams_that_take_nothing_end_no_work(streams, data, cached, tmp_path):
    """A service has none, and a log's disk is full: what was computed would be lost."""
    said = under(by_features(data, tmp_path), streams=streams, env=cached)
    assert {"labels.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}
    assert (not said.stdout) == (">&-" in streams.replace("2>&-", "")), "the other stream is there"
    assert (not said.stderr) == ("2>" in streams)


def test_closed_streams_are_none_of_the_processes_that_compute_either(data, cached, tmp_path):
    """Nor is a file of theirs what their numbers stand for."""
    command = [*RELABEL, data / "labels.csv", "--out", tmp_path, "--jobs", "1", *SHORT]
    under(command, streams="<&- >&- 2>&-", env=cached)
    assert (tmp_path / "labels.csv").exists()


def test_what_prepares_data_works_without_streams_too(tmp_path):
    """And says what is wrong by its exit code."""
    for module, words in (("prepare_clothing1m", [tmp_path]), ("cifar10_jpeg", ["a", "b.tar"])):
        command = [sys.executable, "-m", f"chainer_jo.datasets.{module}", *words]
        assert under(command, code=2).stderr.splitlines()[-1].startswith("error: ")
        assert under(command, streams=">&- 2>&-", code=2).stderr == ""


@pytest.mark.parametrize("umask, mode", [(0o077, 0o600), (0o002, 0o664), (0o022, 0o644)])
def test_permissions_of_files_follow_from_the_umask(umask, mode, data, cached, tmp_path):
    under(by_features(data, tmp_path), f"umask {umask:03o}", env=cached)
    written = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert written["labels.csv"] == written["report.html"] == mode
    assert set(written.values()) == {mode}


def test_a_file_that_was_readable_by_all_is_not_once_it_is_written_again(tmp_path):
    """Neither the file before nor a name that is taken decides."""
    path = tmp_path / "file"
    for mode in (0o644, 0o600):
        words = (
            "import sys, pathlib; from chainer_jo import files",
            "path = pathlib.Path(sys.argv[1])",
        )
        program = "; ".join((*words, "files.write_text(path, 'x')"))
        under([sys.executable, "-c", program, path], f"umask {0o666 ^ mode:03o}")
        assert path.stat().st_mode & 0o777 == mode
    with contextlib.suppress(ZeroDivisionError):
        files.write(path, lambda file: 1 / 0)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and path.read_text() == "x"


def test_too_few_open_files_are_one_line(data, cached, tmp_path):
    command = [*RELABEL, data / "labels.csv", "--out", tmp_path, "--jobs", "2", *SHORT]
    said = under(command, "ulimit -n 16", code=2, env=cached).stderr.splitlines()
    assert said[-1].startswith("error: ") and "Too many open files" in said[-1]
    assert not any("Traceback" in line for line in said)


def test_a_working_folder_that_was_removed_is_one_line(data, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    (tmp_path / "data").symlink_to(data)
    command = [*RELABEL, "../data/labels.csv", "--out", "../out", *SHORT]
    said = under(command, f"cd {gone}; rmdir {gone}", code=2).stderr
    assert said == "error: working folder: No such file or directory, expected one that is there\n"


@pytest.mark.parametrize("module", ["prepare_clothing1m", "cifar10_jpeg"])
def test_help_without_docstrings(module):
    """As python -OO leaves them out."""
    command = [sys.executable, "-OO", "-m", f"chainer_jo.datasets.{module}", "--help"]
    assert "--help" in processes.run(command).stdout


def test_no_program_needs_its_docstring():
    for folder in ("chainer_jo", "benchmarks", "reproduce", "examples"):
        for path in (processes.ROOT / folder).rglob("*.py"):
            taken = re.search(r"(?<!__doc__ and )__doc__[.\[]", path.read_text(encoding="utf-8"))
            assert not taken, path
