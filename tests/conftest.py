"""The tests run from a checkout: the package need not be installed, and scripts are modules."""

import gc
import os
import shutil
import signal
import sys
from collections import Counter
from contextlib import nullcontext

import pytest
import subnormals
from processes import ROOT

# Threads wait for each other longer than they compute on small arrays, most of all on a busy
# machine; tests of threads set their number themselves.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["MPLBACKEND"] = "agg"  # not a notebook's
# Tests that were started in the background would hand down that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, str(ROOT))
sys.path += [str(ROOT / folder) for folder in ("benchmarks", "reproduce", "tools")]

# Before any test imports chainer: see chainer_jo._compat.
from chainer_jo.devices import usable_cores  # noqa: E402
from chainer_jo.engine.backend import choose_backend, use_backend  # noqa: E402


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nothing asks
def pytest_xdist_auto_num_workers(config):
    """For ``-n auto``, which otherwise counts cores that are not ours."""
    return usable_cores()


def pytest_terminal_summary(terminalreporter):
    """One line on skipped tests, with the most frequent reasons first."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        said = ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
        terminalreporter.write_line(f"{reasons.total()} skipped: {said}")


@pytest.fixture(autouse=True)
def engine_as_before():
    """A run makes its engine that of the process; the next test has none that it did not choose."""
    yield
    use_backend(None)


@pytest.fixture(autouse=True)
def collected_between_tests():
    """With GPU_EMULATOR_LAZY, arrays that are freed while a stand-in's Python runs as work of the
    emulated GPU let work behind it run at once, on unwritten arrays: the garbage collector must not
    free them there."""
    thresholds = gc.get_threshold()
    if int(os.environ.get("GPU_EMULATOR_LAZY") or 0):
        gc.collect()
        gc.set_threshold(0)  # holds where gc.disable() would end with the first captured step
    yield
    gc.set_threshold(*thresholds)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A data set folder of the test's own; gives that of the package in it."""
    monkeypatch.setattr("chainer.dataset.download._dataset_root", str(tmp_path / "cache"))
    return tmp_path / "cache" / "chainer_jo"


@pytest.fixture
def folders(tmp_path):
    """Images in class folders."""
    from class_folders import pets

    return pets(tmp_path / "my pets")


@pytest.fixture(params=["subnormals", "flushed"])
def arithmetic(request):
    """With subnormal numbers as NumPy has them, and with zeros instead, as CuPy's kernels have."""
    if request.param == "flushed" and not subnormals.SUPPORTED:
        pytest.skip("how to flush subnormals is known for glibc on x86-64 and 64-bit Arm alone")
    with subnormals.flushed() if request.param == "flushed" else nullcontext():
        yield request.param


@pytest.fixture
def preset(monkeypatch):
    """Makes the preset ``tiny`` known to the flags."""
    from tiny import TINY

    from chainer_jo.reproduction.experiments import presets

    monkeypatch.setitem(presets.PRESETS, "tiny", TINY)


@pytest.fixture
def tiny(preset, monkeypatch):
    """The same, where everything is computed in this process."""
    from here import compute_here

    compute_here(monkeypatch.setattr)
    choose_backend("cpu")  # a notice, where there is no oneDNN, comes before the test


@pytest.fixture(scope="session")
def smallest_table(tmp_path_factory):
    """The folder of `computed`, which nothing may be written to."""
    from script_runs import SMALL, in_this_process, run, table1

    folder = tmp_path_factory.mktemp("smallest")
    with in_this_process():
        assert run(table1, folder, *SMALL) == 0
    return folder


@pytest.fixture
def computed(smallest_table, tiny, tmp_path):
    """A folder in which the smallest table has been computed."""
    return shutil.copytree(smallest_table, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def own_set(tmp_path_factory):
    """Images with noisy labels, which nothing may be written to, and a cache that starts empty."""
    from own_images import read_only

    folder = tmp_path_factory.mktemp("own")
    with read_only(folder / "set", folder / "cache") as root:
        yield root


@pytest.fixture(scope="module")
def corrected(own_set, tmp_path_factory):
    """The folder that relabelling by images writes."""
    from own_images import SHORT, files_below, run

    out = tmp_path_factory.mktemp("images") / "out"
    before = files_below(own_set)
    assert run("relabel", own_set / "labels.csv", "--out", out, *SHORT) == 0
    assert files_below(own_set) == before
    return out


@pytest.fixture(scope="module")
def by_features(own_set, tmp_path_factory):
    """The folder that relabelling by features writes."""
    from own_images import BY_FEATURES, run

    features, true = own_set / "features.npz", own_set / "true.csv"
    out = tmp_path_factory.mktemp("features") / "out"
    words = ("--features", features, "--true-labels", true, *BY_FEATURES)
    assert run("relabel", own_set / "labels.csv", "--out", out, *words) == 0
    return out
