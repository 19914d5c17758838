"""Scripts that compute nothing: --no-runs shows what has finished, --dry-run plans and costs."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from script_runs import SMALL, figure5, refused, run, table1
from tiny import STUDY, TINY, record

from chainer_jo import files
from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.commands.dry_run import script_lines
from chainer_jo.reproduction.experiments import presets
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.status import GUESS, MEASURED, UNKNOWN, Cost, duration
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import plot
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims
from chainer_jo.reproduction.tables_and_figures.output import trials_by_number
from chainer_jo.reproduction.tables_and_figures.table import Table
from chainer_jo.reproduction.tables_and_figures.table_layouts import (
    comparison_table,
    sensitivity_table,
)


def test_dry_run_lists_and_runs_nothing(preset, tmp_path, capsys):
    assert run(table1, tmp_path, "--dry-run", "--trials", "1") == 0
    out = capsys.readouterr().out
    assert out.count("to do  ") == 18 and "18 runs, 18 to do" in out
    assert "(a guess until the first run has finished)" in out
    assert not (tmp_path / "results").exists()


def test_dry_run_of_an_id_says_why_a_run_is_to_do_or_done(computed, capsys, monkeypatch):
    def why(*words):
        assert run(table1, computed, *words) == 0
        return capsys.readouterr().out.splitlines()

    def first_step(seed):
        return "--noise-rates", "0.5", "--trials", "2", "--dry-run", f"first-step-sn50-s{seed}"

    nearest = ["  seed: 0, here 1"]
    assert why(*first_step(0))[1:3] == [
        "state: finished", "reason: it has a result, made by this code",
    ]  # fmt: skip
    lines = why(*first_step(1))
    assert lines[1:3] == ["state: to do", "reason: no result"] and lines[4:] == nearest
    assert lines[3].startswith("nearest finished run: first-step-sn50-s0-")
    assert why(*first_step(0), "--fresh")[1:3] == ["state: to do", "reason: --fresh repeats it"]
    monkeypatch.setattr("chainer_jo.reproduction.running.provenance.sources_digest", lambda: "x")
    assert why(*first_step(0))[2].startswith("reason: made by other code than this")
    for path in (*computed.rglob("second-*/result.json"), *computed.rglob("labels.npz")):
        path.unlink()
    state, reason = why(*first_step(0))[1:3]
    assert state == "state: to do" and reason.startswith("reason: its labels are gone")
    for start, said in (("first", "2 runs, such as first-step-sn50-s0-"), ("x", "no run of this")):
        assert run(table1, computed, *first_step(0)[:-1], start) == 2
        assert f"--dry-run {start}: {said}" in refused(capsys)


def test_no_runs_shows_what_has_finished(computed, capsys):
    def table2(study):
        return comparison_table(study, tables.TABLE2, "asymmetric")

    both, empty = [table1, table2], computed / "empty"
    known = empty / "results" / "tiny" / "provenance.json"  # of tables without their runs
    files.write_json(known, {"runs": 9})
    assert run(both, empty, "--no-runs") == 0
    assert capsys.readouterr().out.endswith("\nwritten: nothing\n")
    assert not list(empty.rglob("table*.md")) and files.read_json(known) == {"runs": 9}
    (table,) = computed.rglob("table*.md")
    table.unlink()
    results = list(computed.rglob("result.json"))
    assert run(both, computed, "--no-runs") == 0
    out = capsys.readouterr().out
    assert "Test 90 %" in out and "Table 2" not in out
    assert list(computed.rglob("result.json")) == results
    assert list(computed.rglob("table*.md")) == [table]


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


@pytest.mark.parametrize("of", [None, Claims])
def test_without_runs_results_of_fewer_trials_replace_nothing(computed, capsys, of):
    """As after runs were lost, or where a command asks for fewer trials."""
    build = partial(of, builds=[table1]) if of else table1
    both = [table1, partial(Claims, builds=[table1])]
    assert run(both, computed, "--noise-rates", "0.5") == 0
    folder = computed / "results" / "tiny"
    assert run(build, computed, "--no-runs") == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    capsys.readouterr()
    assert run(build, computed, "--trials", "1", "--no-runs") == 2
    line = refused(capsys)
    assert re.search(r"json: \d+ of the \d+ trials behind its numbers are available", line)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_no_runs_shows_pseudo_labels_without_their_features(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: {})  # which takes longer than the runs
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
    """Not their sum alone. More trials change the word of a claim."""

    def figure(**trials):
        return {"curves": [{"label": name, "trials": n} for name, n in trials.items()]}

    def claim(word, trials):
        comparison = {"compared": "a", "at": "r = 0.5", "trials": trials}
        return [{"id": "x", "word": word, "comparisons": [comparison]}]

    before = trials_by_number(figure(noisy=2, pseudo=2))
    assert before.total() == 4 and not before <= trials_by_number(figure(noisy=5))
    assert before <= trials_by_number(figure(pseudo=2, noisy=3))
    later = trials_by_number(claim("agrees", 6))
    assert trials_by_number(claim("unclear", 3)) <= later


@pytest.mark.parametrize("content", [{"trials": "nine"}, {"cells": [{"trials": {"a": 3}}]}])
def test_a_table_of_another_form_is_one_line_before_it_is_replaced(computed, capsys, content):
    files.write_json(computed / "results" / "tiny" / "table1.json", content)
    assert run(table1, computed, "--no-runs") == 2
    line = refused(capsys)
    assert "table1.json: damaged (" in line and "remove the file" in line


def test_an_input_that_is_missing_fails_a_script_unless_only_what_there_is_was_asked_for(
    computed, capsys, monkeypatch
):
    monkeypatch.setattr(Table, "missing", "no features of these images")
    assert run(table1, computed, *SMALL) == 2
    assert "error: no features of these images" in capsys.readouterr().err
    assert run(table1, computed, *SMALL, "--no-runs") == 0
    assert "Test 50 %" in capsys.readouterr().out


def test_a_plan_names_what_diverged_and_what_is_done_afresh(tiny, tmp_path, capsys):
    """A second step after a first one that diverged has no result and is not to do."""
    study = Study(TINY, "digits")
    first = study.joint("symmetric", 0.5, 0).first_step
    store = RunStore(tmp_path / "results" / study.folder)
    record(store, first, "diverged", seconds=1, iterations=1, provenance={"device": "this"})
    assert run(table1, tmp_path, *SMALL, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "-step-" in line] == ["diverged"] * 2
    assert run(table1, tmp_path, *SMALL, "--dry-run", "--fresh") == 0
    assert "3 runs, 3 to do; " in capsys.readouterr().out


def test_other_images_than_the_presets_are_not_given_its_cost(tiny, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(presets.PRESETS, "tiny", replace(TINY, default_data="cifar10"))
    assert run(table1, tmp_path, *SMALL, "--data", "digits", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "3 to do; ? of ? of computing" in said
    assert "(not known on this device until the first run has finished)" in said


def test_a_guess_is_within_a_fifth_of_what_was_measured():
    """Seconds of an epoch on a core of a Xeon with AMX: 45,000 / 128 iterations of docs/cpu.md, and
    the committed ablations of `half`."""
    seconds_of = {("paper", "fp32"): 528, ("paper", "mixed"): 140, ("half", "mixed"): 21}
    for (name, precision), measured in seconds_of.items():
        study = Study(presets.PRESETS[name], "cifar10", precision=precision)
        assert app._seconds_per_epoch(study) == pytest.approx(measured, rel=0.2)


RUN = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)


def test_an_epoch_takes_the_median_of_finished_runs_or_else_a_guess(tmp_path):
    store, epochs = RunStore(tmp_path), RUN.optimization.epochs
    runs = [replace(RUN, seed=seed) for seed in range(4)]
    guess = Cost.of(store, runs, "this", 2.0)
    assert guess == Cost(2.0, GUESS) and guess.seconds(RUN) == epochs * 2.0
    for each, seconds in zip(runs, (3, 1, 50, 0.01), strict=True):
        state, here = "finished" if seconds >= 1 else "diverged", {"device": "this"}
        record(store, each, state, seconds=seconds * epochs, provenance=here)
    assert Cost.of(store, runs, "this", 2.0) == Cost(3.0, MEASURED)
    assert Cost.of(store, runs, "another", 2.0) == guess
    assert Cost.of(store, runs, None, 2.0) == Cost(3.0, MEASURED)


def test_a_gpu_is_not_given_the_seconds_of_a_cpu(tmp_path):
    unknown = Cost.of(RunStore(tmp_path), [RUN], "this", None)
    assert unknown.basis == UNKNOWN and duration(unknown.seconds(RUN)) == "?"
    output = SimpleNamespace(name="table1", experiments=[RUN])
    assert "nan" not in " ".join(script_lines([output], {RUN: 1}, unknown))
