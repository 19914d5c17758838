"""The scripts as a user meets them: their tables, and results of other code or data."""

import json
from dataclasses import replace

import pytest
from script_runs import SMALL, refused, run, table1
from tiny import TINY

from chainer_jo import files
from chainer_jo.data import source
from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.experiments import presets
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell
from chainer_jo.reproduction.tables_and_figures.table import Block, Table
from chainer_jo.reproduction.tables_and_figures.table_layouts import validation


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
    # An error that comes from another process.
    baseline = Study(TINY, "digits").baseline("cross_entropy", "symmetric", 0.5, 0)
    run_folder = RunStore(folder).folder(baseline)
    (run_folder / "result.json").unlink()
    description = run_folder / "experiment.json"
    description.write_text(description.read_text().replace('"seed": 0', '"seed": 5'))
    assert run(table1, tmp_path, "--noise-rates", "0.5") == 2
    assert baseline.id in refused(capsys)


def test_results_of_other_code_are_noted(computed, caplog, monkeypatch):
    """They are of the same id, and other numbers: a cell may mix both."""
    assert run(table1, computed, *SMALL) == 0
    assert not caplog.messages
    monkeypatch.setattr(provenance, "sources_digest", lambda: "another")
    assert run(table1, computed, *SMALL) == 0
    (note,) = caplog.messages
    assert note.startswith("3 of 3 finished runs were made by other code than this (commit ")


def test_runs_that_other_code_had_begun_are_noted_when_they_end(computed, caplog, monkeypatch):
    store = RunStore(computed / "results" / "tiny")
    baseline = Study(TINY, "digits").baseline("cross_entropy", "symmetric", 0.5, 0)

    def ended(*_):
        result = store.result(baseline)
        result["provenance"]["sources"] = "another"
        store.save_result(baseline, result)
        return True

    monkeypatch.setattr(app, "_run", ended)
    assert run(table1, computed, *SMALL) == 0
    (note,) = caplog.messages
    assert note.startswith("1 of 3 finished runs were made by other code than this (commit ")


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


def test_fresh_forgets_finished_runs_unless_it_is_refused(computed, capsys):
    """As another process is at a run, or the data are others."""
    before = {path: path.stat().st_mtime_ns for path in computed.rglob("result.json")}
    files_before = sorted(computed.rglob("runs/*/*"))
    store = RunStore(computed / "results" / "tiny")
    baseline = Study(TINY, "digits").baseline("cross_entropy", "symmetric", 0.5, 0)
    with store.lock(baseline):
        assert run(table1, computed, *SMALL, "--fresh") == 2
    assert f"run {baseline.id}: another process computes this run" in refused(capsys)
    bound = store.root / "data.json"
    text = bound.read_text()
    bound.write_text('{"data": "digits", "fingerprint": "others"}')
    assert run(table1, computed, *SMALL, "--fresh") == 2
    assert "expected the same data" in refused(capsys)
    assert sorted(computed.rglob("runs/*/*")) == files_before
    bound.write_text(text)
    assert run(table1, computed, *SMALL, "--fresh") == 0
    after = {path: path.stat().st_mtime_ns for path in computed.rglob("result.json")}
    assert before.keys() == after.keys() and all(after[p] > before[p] for p in before)
    assert "3 runs, 3 to do" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [(), ("--no-runs",), ("--dry-run",)])
def test_results_of_two_data_sets_are_refused(computed, capsys, flags):
    """Runs may be copied alone, without data.json."""
    (bound,), (path, *_) = computed.rglob("data.json"), computed.rglob("result.json")
    bound.unlink()
    result = {**json.loads(path.read_text()), "data": "0123456789abcdef"}
    del result["sha256"]
    path.write_text(json.dumps({**result, "sha256": files.json_digest(result)}))
    assert run(table1, computed, *SMALL, *flags) == 2
    assert "0123456789abcdef" in refused(capsys) and not bound.exists()


def test_nothing_is_computed_beside_results_of_other_data(computed, capsys, monkeypatch):
    (bound,), results = computed.rglob("data.json"), list(computed.rglob("result.json"))
    bound.unlink()
    data = source.DATA_SETS["digits"]()
    other = replace(data, train=replace(data.train, images=255 - data.train.images))
    monkeypatch.setitem(source.DATA_SETS, "digits", lambda: other)
    assert run(table1, computed, "--noise-rates", "0.5", "--trials", "2") == 2
    assert json.loads(results[0].read_text())["data"] in refused(capsys)
    assert list(computed.rglob("result.json")) == results and not bound.exists()


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


def test_results_folder_that_is_a_file(tiny, tmp_path, capsys):
    (tmp_path / "results").write_text("in the way")
    assert run(table1, tmp_path) == 2
    assert "cannot write" in refused(capsys)
    assert (tmp_path / "results").read_text() == "in the way"
