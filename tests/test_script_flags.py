"""Flags of the scripts: their defaults, and one clear line for wrong ones."""

from functools import partial

import numpy as np
import pytest
from script_runs import figure5, refused, run, table1

from chainer_jo.reproduction.commands import script_flags
from chainer_jo.reproduction.commands.script_flags import InMemory
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims
from chainer_jo.reproduction.tables_and_figures.table_layouts import sensitivity_table


@pytest.mark.parametrize("given, preset, jobs, threads", [
    ("", "digits", 4, 1),
    ("--jobs 1", "digits", 1, 1),
    ("--jobs 1 --threads 3", "digits", 1, 3),
    ("--preset half", "half", 4, 1),
    ("--preset half --jobs 1", "half", 1, 4),
    ("--preset half --threads 2", "half", 2, 2),
    ("--preset half --jobs 9 --threads 9", "half", 1, 4),
])  # fmt: skip
def test_jobs_times_threads_are_never_more_than_the_cores(
    given, preset, jobs, threads, monkeypatch
):
    monkeypatch.setattr("chainer_jo.reproduction.commands.script_flags.usable_cores", lambda: 4)
    found = script_flags.parse("", ["--device", "cpu", *given.split()], InMemory())
    assert (found.preset.name, found.jobs, found.threads) == (preset, jobs, threads)
    where = "chainer_jo.reproduction.commands.script_flags.resolve_device"
    for device, usual in (("cpu", "digits"), ("cuda:0", "paper")):
        monkeypatch.setattr(where, lambda name, here, device=device: device)
        assert script_flags.parse("", [], InMemory()).preset.name == usual


def test_features_that_do_not_fit_are_refused_before_anything_runs(tiny, tmp_path, capsys):
    path = tmp_path / "embeddings.npz"
    np.savez(path, features=np.zeros((1499, 2)))
    assert run(figure5, tmp_path, "--features", str(path)) == 2
    assert "expected 1498 rows" in capsys.readouterr().err
    assert not RunStore(tmp_path / "results" / "tiny").results()


@pytest.mark.parametrize("flags, words", [
    (["--preset", "huge"], ["--preset huge", "digits"]),
    (["--noise-rates", "1.5"], ["1.5: expected a number in [0, 1]"]),
    (["--noise-rates", "0.123456789"], ["0.123456789: expected one of Table 5, [0.0, 0.1"]),
    (["--noise-rates", "many"], ["many: expected"]),
    (["--trials", "0"], ["--trials: 0: expected a whole number of at least 1"]),
    (["--jobs", "1.5"], ["--jobs: 1.5: expected a whole number"]),
    (["--seed", "-1"], ["--seed: -1: expected"]),
    (["--time-budget", "0"], ["--time-budget: 0: expected a finite number above 0"]),
    (["--device", "tpu"], ["--device tpu", "cpu"]),
    (["--device", "cuda:99"], ["--device cuda:99"]),
    (["--precision", "fp8"], ["fp8"]),
    (["--engine", "tpu"], ["tpu"]),
    (["--engine", "cudnn"], ["engine: 'cudnn' on device cpu, expected 'onednn' or 'stock'"]),
    (["--resnet50-weights", "x"], ["--resnet50-weights /", "x: expected images in colour"]),
    (["--data", "nowhere.tar"], ["nowhere.tar"]),
    (["--unknown"], ["--unknown"]),
    (["--fresh", "--no-runs"], ["--fresh", "--no-runs"]),
    (["--cluster", "x", "--threads", "2"], ["--threads with --cluster x", "one run at a time"]),
])  # fmt: skip
def test_bad_flags_end_with_one_line(tiny, tmp_path, capsys, flags, words):
    assert run(table1, tmp_path, *flags) == 2
    error = refused(capsys)
    assert all(word in error for word in words), error
    assert not list(tmp_path.rglob("*.json"))


def test_noise_rates_where_they_are_fixed(tiny, tmp_path, capsys):
    """Somebody who asks for 0.5 must not get, after hours, what is at 0.4."""

    def table6(study):
        return sensitivity_table(study, tables.TABLE6)

    for build in (table6, partial(Claims, builds=[table6])):
        assert run(build, tmp_path, "--dry-run", "--noise-rates", "0.5") == 2
        error = refused(capsys)
        assert error.startswith("error: --noise-rates 0.5: ")
        assert "expected a script of Tables 1 or 2 or Figures 2 or 3" in error
    assert run([table6, table1], tmp_path, "--dry-run", "--noise-rates", "0.3", "0.5") == 0
    assert run(table6, tmp_path, "--dry-run", "--noise-rates", "0.4") == 0  # as it is anyway
