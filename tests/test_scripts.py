"""The scripts as a user meets them: their output, their files, and one clear line for bad input."""

import itertools
import json
import math
import os
import re
import signal
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path

import numpy as np
import processes
import pytest
from here import Here
from processes import ROOT
from tiny import TINY

from chainer_jo import files
from chainer_jo.command_line import ending
from chainer_jo.commands import app, main, script_flags
from chainer_jo.commands.script_flags import InMemory
from chainer_jo.data import source
from chainer_jo.engine.backend import choose_backend
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.paper import tables
from chainer_jo.report.claims import Claims
from chainer_jo.report.html import Report
from chainer_jo.report.label_curves import label_figure
from chainer_jo.report.output import trials_by_number
from chainer_jo.report.table import Block, Cell, Table
from chainer_jo.report.table_layouts import comparison_table, sensitivity_table, validation
from chainer_jo.runs import presets, provenance
from chainer_jo.runs.presets import Study
from chainer_jo.runs.store import RunStore

#: The smallest table: three runs.
SMALL = ("--noise-rates", "0.5", "--trials", "1")


@pytest.fixture
def preset(monkeypatch):
    """Makes the preset ``tiny`` known to the flags."""
    monkeypatch.setitem(presets.PRESETS, "tiny", TINY)


@pytest.fixture
def tiny(preset, monkeypatch):
    """The same, where everything is computed in this process."""
    monkeypatch.setattr(app, "LocalPool", Here)
    choose_backend("cpu")  # a notice, where there is no oneDNN, comes before the test


def table1(study):
    return comparison_table(study, tables.TABLE1, "symmetric")


figure5 = partial(label_figure, number=5, what="Test accuracy", key="test")


def run(build, folder, *flags):
    """The script in this process; returns its exit code."""
    argv = ["--preset", "tiny", "--results", str(folder / "results"),
            "--figures", str(folder / "figures"), "--device", "cpu", *flags]  # fmt: skip
    try:
        main(build, "test", argv)
    except SystemExit as end:
        return end.code
    return 0


def refused(capsys):
    """The one line that a script has ended with."""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def computed(tiny, tmp_path, capsys):
    """The folder in which the smallest table has been computed."""
    assert run(table1, tmp_path, *SMALL) == 0
    capsys.readouterr()
    return tmp_path


def test_help_says_the_defaults_of_values_alone(capsys):
    with pytest.raises(SystemExit):
        script_flags.parse("What it is for.", ["--help"], InMemory())
    said = " ".join(capsys.readouterr().out.split())
    assert "(default: results)" in said
    assert not any(f"default: {value})" in said for value in (None, True, False))


def test_table_from_nothing_and_again(preset, tmp_path, capsys):
    """In processes of their own, as whoever calls a script has it."""
    assert run(table1, tmp_path, "--noise-rates", "0.5") == 0
    first = capsys.readouterr().out
    head = first.split("\n")[0]
    assert "preset tiny" in head and "data digits" in head and "6 runs, 6 to do" in head
    folder = tmp_path / "results" / "tiny"
    data = json.loads((folder / "table1.json").read_text())
    assert (data["preset"], data["data"], data["complete"]) == ("tiny", "digits", True)
    assert len(data["cells"]) == 2 * 2 * 2 + 1  # and the labels before any method
    assert all(len(c["trials"]) == 2 and 0 <= c["mean"] <= 100 for c in data["cells"])
    assert len((folder / "table1.csv").read_text().splitlines()) == 1 + 9
    assert run(table1, tmp_path, "--noise-rates", "0.5") == 0
    again = capsys.readouterr().out
    assert "6 runs, 0 to do" in again
    assert again.split("**Table")[1] == first.split("**Table")[1]


def test_results_of_other_code_are_noted(computed, caplog, monkeypatch):
    """They are of the same id, and other numbers: a cell may mix both."""
    assert run(table1, computed, *SMALL) == 0
    assert not caplog.messages
    monkeypatch.setattr(provenance, "sources_digest", lambda: "another")
    assert run(table1, computed, *SMALL) == 0
    (note,) = caplog.messages
    assert note.startswith("3 of 3 finished runs were made by other code than this (commit ")


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
    monkeypatch.setattr("chainer_jo.runs.computing_flags.usable_cores", lambda: 4)
    found = script_flags.parse("", ["--device", "cpu", *given.split()], InMemory())
    assert (found.preset.name, found.jobs, found.threads) == (preset, jobs, threads)


@pytest.mark.parametrize(("device", "preset"), [("cpu", "digits"), ("cuda:0", "paper")])
def test_the_preset_follows_the_device(device, preset, monkeypatch):
    monkeypatch.setattr("chainer_jo.runs.computing_flags.resolve_device", lambda name, here: device)
    assert script_flags.parse("", [], InMemory()).preset.name == preset


@pytest.mark.parametrize("share, least, most", [(math.inf, 4, 1000), (1e-9, 2, 2)])
def test_tables_are_brought_up_to_date_meanwhile(tiny, tmp_path, monkeypatch, share, least, most):
    written = []
    write = Table.write

    def spy(table, *rest):
        written.append(table.name)
        return write(table, *rest)

    monkeypatch.setattr(Table, "write", spy)
    monkeypatch.setattr(app, "REFRESH_SHARE", share)
    assert run(table1, tmp_path, *SMALL) == 0
    assert least <= len(written) <= most and set(written) == {"table1"}


def test_dry_run_lists_and_runs_nothing(preset, tmp_path, capsys):
    assert run(table1, tmp_path, "--dry-run", "--trials", "1", "--machines", "64") == 0
    out = capsys.readouterr().out
    assert out.count("to do  ") == 18 and "18 runs, 18 to do" in out
    assert "(a guess until the first run has finished)" in out
    assert "on 64 machines, " in out
    assert not (tmp_path / "results").exists()


def test_a_budget_ends_though_the_clock_is_set_back(tiny, tmp_path, capsys, monkeypatch):
    set_back = itertools.count(time.time(), -1e6)
    monkeypatch.setattr(time, "time", lambda: next(set_back))
    assert run(table1, tmp_path, *SMALL, "--time-budget", "1e-9") == 0
    assert "time is up" in capsys.readouterr().out


def test_no_runs_shows_what_has_finished(tiny, tmp_path, capsys):
    def table2(study):
        return comparison_table(study, tables.TABLE2, "asymmetric")

    both = [table1, table2]
    assert run(both, tmp_path, "--no-runs") == 0
    assert capsys.readouterr().out.endswith("\nwritten: nothing\n")
    assert not list(tmp_path.rglob("table*.md"))
    assert run(table1, tmp_path, *SMALL) == 0
    results = list(tmp_path.rglob("result.json"))
    assert run(both, tmp_path, "--no-runs") == 0
    out = capsys.readouterr().out
    assert "Test 90 %" in out and "Table 2" not in out
    assert list(tmp_path.rglob("result.json")) == results
    assert len(list(tmp_path.rglob("table*.md"))) == 1


def test_no_runs_shows_no_table_without_a_whole_line_unless_asked_for_it(tiny, tmp_path, capsys):
    """Of a row of Table 8, the value that the paper chose is Table 1's."""

    def table8(study):
        return sensitivity_table(study, tables.TABLE8)

    assert run(table1, tmp_path, "--noise-rates", "0.7", "--trials", "1") == 0
    capsys.readouterr()
    assert run([table1, table8], tmp_path, "--trials", "1", "--no-runs") == 0
    assert "Table 8" not in capsys.readouterr().out
    assert run(table8, tmp_path, "--trials", "1", "--no-runs") == 0
    assert "Table 8" in capsys.readouterr().out


@pytest.mark.parametrize("of", [None, Claims, Report])
def test_without_runs_results_of_fewer_trials_replace_nothing(tiny, tmp_path, capsys, of):
    """As after runs were lost, or where a command asks for fewer trials."""
    build = partial(of, builds=[table1]) if of else table1
    both = [table1, partial(Claims, builds=[table1])]
    assert run(both, tmp_path, "--noise-rates", "0.5") == 0
    folder = tmp_path / "results" / "tiny"
    assert run(build, tmp_path, "--no-runs") == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capsys.readouterr()
    assert run(build, tmp_path, "--trials", "1", "--no-runs") == 2
    line = refused(capsys)
    assert re.search(r"json: \d+ of the \d+ trials behind its numbers are available", line)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_features_that_do_not_fit_are_refused_before_anything_runs(tiny, tmp_path, capsys):
    path = tmp_path / "embeddings.npz"
    np.savez(path, features=np.zeros((1499, 2)))
    assert run(figure5, tmp_path, "--features", str(path)) == 2
    assert "expected 1498 rows" in capsys.readouterr().err
    assert not RunStore(tmp_path / "results" / "tiny").results()


def test_no_runs_shows_pseudo_labels_without_their_features(tiny, tmp_path):
    path = tmp_path / "embeddings.npz"
    np.savez(path, features=np.random.default_rng(0).normal(size=(1498, 2)))
    assert run(figure5, tmp_path, "--features", str(path)) == 0
    path.unlink()
    written = tmp_path / "results" / "tiny" / "figure5.md"
    before = written.read_text()
    assert "clusters of other features, not of ResNet-50's" in before
    written.unlink()
    assert run(figure5, tmp_path, "--no-runs") == 0
    assert written.read_text() == before


def test_trials_are_counted_number_by_number():
    """Not their sum alone."""

    def figure(**trials):
        return {"curves": [{"label": name, "trials": n} for name, n in trials.items()]}

    before = trials_by_number(figure(noisy=2, pseudo=2))
    assert before.total() == 4 and not before <= trials_by_number(figure(noisy=5))
    assert before <= trials_by_number(figure(pseudo=2, noisy=3))


def test_a_claim_with_another_verdict_keeps_its_trials():
    """More trials change a verdict, and so the label of the claim."""
    before, after = (
        [{"id": "x", "label": label, "findings": [{"what": "a", "trials": trials}]}]
        for label, trials in (("undecided after 3 trials", 3), ("in part (1 of 2)", 6))
    )
    assert trials_by_number(before) <= trials_by_number(after)


@pytest.mark.parametrize("content", [{"trials": "nine"}, {"cells": [{"trials": {"a": 3}}]}])
def test_a_table_of_another_form_is_one_line_before_it_is_replaced(computed, capsys, content):
    files.write_json(computed / "results" / "tiny" / "table1.json", content)
    assert run(table1, computed, "--no-runs") == 2
    line = refused(capsys)
    assert "table1.json: damaged (" in line and "expected the file removed" in line


def test_data_json_that_is_nested_too_deep_is_one_line(tiny, tmp_path, capsys):
    bound = tmp_path / "results" / "tiny" / "data.json"
    bound.parent.mkdir(parents=True)
    bound.write_text("[" * 50_000)
    assert run(table1, tmp_path, *SMALL) == 2
    line = refused(capsys)
    assert "data.json: not readable as JSON (" in line and "expected it whole, or removed" in line


def test_what_is_known_of_runs_elsewhere_stays(tiny, tmp_path):
    """Of a folder of tables without their runs."""
    known = tmp_path / "results" / "tiny" / "provenance.json"
    known.parent.mkdir(parents=True)
    known.write_text('{"runs": 9}')
    assert run(table1, tmp_path, "--no-runs") == 0
    assert known.read_text() == '{"runs": 9}'


def test_a_preset_is_the_same_where_its_precision_cannot_be_had(
    tiny, tmp_path, capsys, caplog, monkeypatch
):
    """Only what computes says so, and names the flag with which it can."""
    monkeypatch.setitem(presets.PRESETS, "tiny", replace(TINY, precision="mixed"))
    here = ("--noise-rates", "0", "--trials", "1", "--engine", "stock")
    assert run(table1, tmp_path, *here) == 2
    folder = tmp_path / "results" / "tiny-fp32"
    assert f"--precision fp32 computes in float32, in {folder}" in refused(capsys)
    assert run(table1, tmp_path, *here, "--no-runs") == 0 and not caplog.messages
    assert run(table1, tmp_path, *here, "--dry-run") == 0 and len(caplog.messages) == 1
    assert "3 runs, 3 to do" in capsys.readouterr().out and not list(tmp_path.rglob("table1*"))
    assert run(table1, tmp_path, *here, "--precision", "fp32") == 0
    assert json.loads((folder / "table1.json").read_text())["precision"] == "fp32"


def test_an_input_that_is_missing_fails_a_script_unless_only_what_there_is_was_asked_for(
    tiny, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Table, "missing", "no features of these images")
    assert run(table1, tmp_path, *SMALL) == 2
    assert "error: no features of these images" in capsys.readouterr().err
    assert run(table1, tmp_path, *SMALL, "--no-runs") == 0
    assert "Test 50 %" in capsys.readouterr().out


def test_fresh_forgets_finished_runs(computed, capsys):
    before = {path: path.stat().st_mtime_ns for path in computed.rglob("result.json")}
    assert run(table1, computed, *SMALL, "--fresh") == 0
    after = {path: path.stat().st_mtime_ns for path in computed.rglob("result.json")}
    assert before.keys() == after.keys() and all(after[p] > before[p] for p in before)
    assert "3 runs, 3 to do" in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, 2])
def test_workers_warm_up_while_data_are_loaded(tiny, tmp_path, monkeypatch, code):
    """Where the data cannot be loaded, the workers end."""
    done = []

    class Warming(Here):
        def warm_up(self, precision):
            done.append(precision)

        def __exit__(self, kind, *error):
            done.append(kind)

    def bind(script):
        done.append("data")
        if code:
            raise UserError("no data")

    monkeypatch.setattr(app, "LocalPool", Warming)
    monkeypatch.setattr(app, "_bind_data", bind)
    assert run(table1, tmp_path, *SMALL) == code
    assert done == ["fp32", "data", UserError if code else None]


class BreaksDown(Here):
    def submit(self, experiment):
        raise Unfinished("a worker process was killed")


class IsKilled(Here):
    def submit(self, experiment):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("pool, code", [(Here, 0), (IsKilled, 130), (BreaksDown, 2)])
def test_stopped_after_fresh_the_command_without_it_goes_on(
    tiny, tmp_path, capsys, monkeypatch, pool, code
):
    """The same command would forget what there is by now."""
    monkeypatch.setattr(app, "LocalPool", pool)
    budget = ("--time-budget", "1e-9") if pool is Here else ()
    assert run(table1, tmp_path, *SMALL, "--fresh", *budget) == code
    said = "".join(capsys.readouterr())
    assert said.count("the same command without --fresh continues where this one stopped") == 1
    assert "the same command continues" not in said


def test_a_kill_while_runs_are_forgotten_leaves_no_second_step_alone(
    computed, tmp_path, capsys, monkeypatch
):
    unlink, runs = os.unlink, []

    def killed(path):
        runs.append(Path(path).parent.name)
        if runs[-1] != runs[0]:
            signal.raise_signal(signal.SIGTERM)
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", killed)
        assert run(table1, tmp_path, *SMALL, "--fresh") == 130
    assert runs[0].startswith("second-step")
    (first,) = tmp_path.rglob("first-step-*/result.json")
    assert run(table1, tmp_path, *SMALL) == 0  # the second once more
    first.unlink()
    capsys.readouterr()
    assert run(table1, tmp_path, *SMALL, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:9].strip() for line in lines if "-step-" in line] == ["to do", "-"]


def test_fresh_that_is_refused_forgets_nothing(computed, capsys):
    """As another process is at a run, or the data are others."""
    before = sorted(computed.rglob("runs/*/*"))
    baseline = Study(TINY, "digits").baseline("cross_entropy", "symmetric", 0.5, 0)
    with RunStore(computed / "results" / "tiny").lock(baseline):
        assert run(table1, computed, *SMALL, "--fresh") == 2
    assert f"run {baseline.id}: another process is at it" in refused(capsys)
    bound = computed / "results" / "tiny" / "data.json"
    bound.write_text('{"data": "digits", "fingerprint": "others"}')
    assert run(table1, computed, *SMALL, "--fresh") == 2
    assert "expected the same data" in refused(capsys)
    assert sorted(computed.rglob("runs/*/*")) == before


def test_a_plan_names_what_diverged_and_what_is_done_afresh(tiny, tmp_path, capsys):
    """A second step after a first one that diverged has no result and is not to do."""
    study = Study(TINY, "digits")
    store = RunStore(tmp_path / "results" / study.folder)
    first = study.joint("symmetric", 0.5, 0).first_step
    store.open(first)
    store.save_result(first, {
        "id": first.id, "state": "diverged", "seconds": 1, "iterations": 1, "sources": {},
        "provenance": {"device": "this"},
    })  # fmt: skip
    assert run(table1, tmp_path, *SMALL, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "-step-" in line] == ["diverged"] * 2
    assert run(table1, tmp_path, *SMALL, "--dry-run", "--fresh") == 0
    assert "3 runs, 3 to do; " in capsys.readouterr().out


@pytest.mark.parametrize("flags", [(), ("--no-runs",), ("--dry-run",)])
def test_results_of_two_data_sets_are_refused(computed, capsys, flags):
    """Runs may be copied alone, without data.json."""
    (bound,), (path, *_) = computed.rglob("data.json"), computed.rglob("result.json")
    bound.unlink()
    result = {**json.loads(path.read_text()), "data": "0123456789abcdef"}
    del result["sha256"], result["log_sha256"]
    path.write_text(json.dumps(result))
    assert run(table1, computed, *SMALL, *flags) == 2
    assert "0123456789abcdef" in refused(capsys) and not bound.exists()


def test_nothing_is_computed_beside_results_of_other_data(computed, capsys, monkeypatch):
    (bound,), results = computed.rglob("data.json"), list(computed.rglob("result.json"))
    bound.unlink()
    data = source.BY_NAME["digits"]()
    other = replace(data, train_images=255 - data.train_images)
    monkeypatch.setitem(source.BY_NAME, "digits", lambda: other)
    assert run(table1, computed, "--noise-rates", "0.5", "--trials", "2") == 2
    assert json.loads(results[0].read_text())["data"] in refused(capsys)
    assert list(computed.rglob("result.json")) == results and not bound.exists()


def test_other_images_than_the_presets_are_not_given_its_cost(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(presets.PRESETS, "tiny", replace(TINY, default_data="cifar10"))
    assert run(table1, tmp_path, *SMALL, "--data", "digits", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "3 to do; ? of ? of computing" in said
    assert "(not known on this device until the first run has finished)" in said


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_diverged_run_is_named_in_the_table(tiny, tmp_path, capsys):
    def build(study):
        hopeless = study.joint("asymmetric", 0.4, 0, learning_rate=1e30)
        cell = Cell({"parameter": "learning_rate"}, {"value": 1e30}, [hopeless], validation)
        return Table(6, "Too high a learning rate.", [Block(["1e30"], [("val (%)", [cell])])])

    for to_do in ("2 to do", "0 to do"):
        assert run(build, tmp_path) == 0
        out = capsys.readouterr().out
        assert to_do in out and "(1 of 1 diverged)" in out
        if to_do == "2 to do":
            assert "diverged in epoch 1 (learning rate 1e+30, alpha 0.8, beta 0.4)" in out


@pytest.mark.parametrize("flags, words", [
    (["--preset", "huge"], ["--preset huge", "digits"]),
    (["--noise-rates", "1.5"], ["1.5", "[0, 1]"]),
    (["--noise-rates", "0.45"], ["0.45", "hyper parameters"]),
    (["--noise-rates", "many"], ["many"]),
    (["--trials", "0"], ["--trials 0", "at least 1"]),
    (["--jobs", "0"], ["--jobs 0", "at least 1"]),
    (["--seed", "-1"], ["--seed -1"]),
    (["--time-budget", "0"], ["--time-budget 0", "positive"]),
    (["--device", "tpu"], ["--device tpu", "cpu"]),
    (["--device", "cuda:99"], ["--device cuda:99"]),
    (["--precision", "fp8"], ["fp8"]),
    (["--engine", "tpu"], ["tpu"]),
    (["--data", "nowhere.tar"], ["nowhere.tar"]),
    (["--unknown"], ["--unknown"]),
    (["--machines", "8"], ["--machines 8", "--dry-run"]),
    (["--fresh", "--no-runs"], ["--fresh", "--no-runs"]),
    (["--cluster", "x", "--jobs", "2"], ["--jobs 2", "one run at a time"]),
])  # fmt: skip
def test_bad_flags_end_with_one_line(tiny, tmp_path, capsys, flags, words):
    assert run(table1, tmp_path, *flags) == 2
    error = refused(capsys)
    assert all(word in error for word in words), error
    assert not list(tmp_path.rglob("*.json"))


def test_a_dtype_that_chainer_was_told_of(tiny, tmp_path, capsys, monkeypatch):
    """Weights in float16 or float64 would meet operations that take float32."""
    monkeypatch.setenv("CHAINER_DTYPE", "float16")
    assert run(table1, tmp_path) == 2
    assert refused(capsys).startswith("error: CHAINER_DTYPE float16: expected float32")


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


def test_results_folder_that_is_a_file(tiny, tmp_path, capsys):
    (tmp_path / "results").write_text("in the way")
    assert run(table1, tmp_path) == 2
    assert "cannot write" in refused(capsys)
    assert (tmp_path / "results").read_text() == "in the way"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_output_that_finds_no_room_ends_with_one_line(tmp_path):
    here = "--results", tmp_path, "--figures", tmp_path, "--device", "cpu"
    with open("/dev/full", "wb") as full:
        command = [sys.executable, ROOT / "reproduce" / "table4.py", "--preset", "digits", *here]
        ended = processes.finish(processes.start(command, stdout=full), code=2)
    assert ended.stderr == "error: output: No space left on device, expected free disk space\n"


def test_what_the_encoding_of_the_output_lacks_is_a_question_mark():
    program = "from chainer_jo.command_line import ending\nwith ending(): print('1 \\xb1')"
    plain = processes.environment(LC_ALL="C", PYTHONUTF8=0)
    assert processes.run([sys.executable, "-c", program], env=plain).stdout == "1 ?\n"
    with redirect_stdout(StringIO()) as shown, ending():
        print("1 ±")
    assert shown.getvalue() == "1 ±\n"


def test_description_that_does_not_match_its_id(preset, tmp_path, capsys):
    """An error that comes from another process."""
    study = Study(TINY, "digits")
    store = RunStore(tmp_path / "results" / study.folder)
    experiment = study.baseline("cross_entropy", "symmetric", 0.5, 0)
    store.open(experiment)
    description = store.folder(experiment) / "experiment.json"
    description.write_text(description.read_text().replace('"seed": 0', '"seed": 5'))
    assert run(table1, tmp_path, "--noise-rates", "0.5") == 2
    assert experiment.id in refused(capsys)


def _computing(folder, **options):
    """A process that has said what it computes."""
    command = [sys.executable, ROOT / "reproduce" / "table1.py", "--preset", "digits",
               *SMALL, "--results", folder,
               "--figures", folder, "--engine", "stock", "--device", "cpu"]  # fmt: skip
    process = processes.start(command, **options)
    assert "preset digits" in process.stdout.readline()
    return process


NO_READER = "output closed by its reader; the same command continues where this one stopped\n"


def test_output_that_is_read_no_more_ends_in_one_line(tmp_path):
    process = _computing(tmp_path)
    process.stdout.close()
    assert processes.finish(process, 1).stderr == NO_READER


@pytest.mark.parametrize("script, said", [("table1", NO_READER), ("compare", "")])
def test_output_that_is_kept_back_until_nobody_reads_it(script, said):
    buffered = processes.environment()
    buffered.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, ROOT / "reproduce" / f"{script}.py", "--help"]
    process = processes.start(command, env=buffered)
    process.stdout.close()
    assert processes.finish(process, 1).stderr == said


@pytest.mark.parametrize("kill", [
    pytest.param(lambda pid: os.killpg(pid, signal.SIGINT), id="ctrl-c"),
    pytest.param(lambda pid: os.kill(pid, signal.SIGTERM), id="kill"),
])  # fmt: skip
def test_interrupt_says_how_to_go_on(tmp_path, kill):
    process = _computing(tmp_path, start_new_session=True)
    time.sleep(2)
    kill(process.pid)
    said = processes.finish(process, 130).stderr
    processes.wait_until(lambda: not processes.alive(process.pid), 5)
    assert said.strip() == "interrupted; the same command continues where this one stopped"
