"""What a command finds around it: streams, limits, permissions, devices, terminals, -OO."""

import contextlib
import os
import re
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from own_images import BY_FEATURES, SHORT, make, one_line, run

from chainer_jo import files
from chainer_jo.data import cifar10_jpeg
from chainer_jo.relabel.read import label_table

CHAINER_JO = [sys.executable, "-c", "from chainer_jo.relabel.cli import main; main()"]
RELABEL = [*CHAINER_JO, "relabel"]
#: The smallest table, which other processes compute.
TABLE = [sys.executable, "-c", """\
import pathlib, sys
from script_runs import SMALL, run, table1
from tiny import TINY
from chainer_jo.reproduction.experiments.presets import PRESETS
PRESETS["tiny"] = TINY
sys.exit(run(table1, pathlib.Path(sys.argv[1]), *SMALL, "--jobs", "2"))
"""]  # fmt: skip
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


@pytest.mark.parametrize("words", [[], ["relabel", "--help"]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_help_on_a_full_disk_is_one_line(words):
    (line,) = under([*CHAINER_JO, *words], streams=">/dev/full", code=2).stderr.splitlines()
    assert line == "error: output: No space left on device, expected free disk space"


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


def test_closed_streams_are_none_of_the_processes_that_compute_either(tmp_path):
    """Nor is a file of theirs what their numbers stand for."""
    under([*TABLE, tmp_path], streams="<&- >&- 2>&-", env=processes.environment(processes.HERE))
    assert list(tmp_path.glob("results/tiny/*.md"))


def test_what_makes_data_works_without_streams_too(capsys):
    """And says what is wrong by its exit code."""
    with pytest.raises(SystemExit, match="^2$"):
        cifar10_jpeg.main(["a", "b.tar"])
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")
    command = [sys.executable, "-m", cifar10_jpeg.__name__, "a", "b.tar"]
    assert under(command, streams=">&- 2>&-", code=2).stderr == ""


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


def test_too_few_open_files_are_one_line(tmp_path):
    environment = processes.environment(processes.HERE)
    said = under([*TABLE, tmp_path], "ulimit -n 16", code=2, env=environment).stderr.splitlines()
    assert said[-1].startswith("error: ") and "Too many open files" in said[-1]
    assert not any("Traceback" in line for line in said)


def test_a_working_folder_that_was_removed_is_one_line(data, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    (tmp_path / "data").symlink_to(data)
    command = [*RELABEL, "../data/labels.csv", "--out", "../out", *SHORT]
    said = under(command, f"cd {gone}; rmdir {gone}", code=2).stderr
    assert said == "error: working folder: No such file or directory, expected an existing folder\n"


def test_no_program_needs_its_docstring():
    for folder in ("chainer_jo", "benchmarks", "reproduce", "tools", "examples"):
        for path in (processes.ROOT / folder).rglob("*.py"):
            taken = re.search(r"(?<!__doc__ and )__doc__[.\[]", path.read_text(encoding="utf-8"))
            assert not taken, path


def test_scripts_find_the_modules_beside_them_in_safe_path_mode():
    """`python -P` and PYTHONSAFEPATH leave a script's folder out of the path. One process loads all
    scripts, each without what another one has imported or added."""
    folders = [processes.ROOT / name for name in ("reproduce", "tools", "examples")]
    load = """
import pathlib, runpy, sys
path, files = [*sys.path], [*map(pathlib.Path, sys.argv[1:])]
for file in files:
    if "__main__" in file.read_text():
        runpy.run_path(str(file))
    sys.path[:] = path
    for other in files:
        sys.modules.pop(other.stem, None)
"""
    files = [path for folder in folders for path in folder.glob("*.py")]
    processes.run([sys.executable, "-P", "-c", load, *files])


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


ORDERS = "\x1b]0;owned\x07\x9b2J\r"
SHOWN = r"\x1b]0;owned\x07\x9b2J\r"


def test_a_terminal_takes_no_orders_from_names(tmp_path, cache, capsys, monkeypatch):
    """A table for a terminal shows what one for a file has."""
    (tmp_path / ORDERS).mkdir()
    data = make(tmp_path / ORDERS / "set")
    for name in ("labels.csv", "true.csv"):
        text = (data / name).read_text(encoding="utf-8")
        (data / name).write_text(text.replace("hell wie Schnee", f"b{ORDERS[:-1]}c"), "utf-8")
    flags = "--features", data / "features.npz", "--true-labels", data / "true.csv"
    out = tmp_path / ORDERS / "out"
    assert run("relabel", data / "labels.csv", "--out", out, *flags, *BY_FEATURES) == 0
    said = capsys.readouterr()
    assert f"b{SHOWN[:-2]}c" in said.out and f"{SHOWN}/out/labels.csv" in said.out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said.out)
    assert f"b{ORDERS[:-1]}c" in (out / "labels.csv").read_text(encoding="utf-8")
    arrays, paths = dict(np.load(data / "features.npz")), [f"{ORDERS}{i}" for i in range(60)]
    np.savez(tmp_path / "f.npz", **arrays | {"paths": paths})
    for terminal, shown in ((True, SHOWN), (False, ORDERS)):
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        assert run("predict", out, "--features", tmp_path / "f.npz") == 0
        assert f'"{shown}0",' in capsys.readouterr().out
