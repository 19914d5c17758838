"""Every table's layout against the paper's, and what the claims read against the tables."""

from dataclasses import replace

import paper_source
import pytest
from tiny import STUDY, record

from chainer_jo import files
from chainer_jo.reproduction.claims.claim import AGREES, CONTRADICTED, NOT_RUN
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_DIGITS
from chainer_jo.reproduction.experiments.presets import PAPER, REAL, Study
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.scheduler import with_first_steps
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell, best_of
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import table3
from chainer_jo.reproduction.tables_and_figures.output import Results
from chainer_jo.reproduction.tables_and_figures.results import OutputResults
from chainer_jo.reproduction.tables_and_figures.table import Block

OUTPUTS = __import__("all").OUTPUTS
COMPUTED = (1, 2, 6, 7, 8, 9, 10, 11, 12, 13)


def build(number, study=STUDY):
    return __import__(f"table{number}").table(study)


@pytest.mark.parametrize("number", COMPUTED)
def test_every_number_of_the_paper_has_its_cell(number):
    printed = getattr(tables, f"TABLE{number}")
    table = build(number, replace(STUDY, data="cifar10"))
    assert (table.number, table.caption) == (number, f"{printed.caption}; CIFAR-10.")
    competing = (cell for cell in table.cells if cell.competes)
    found = {tuple(cell.keys[name] for name in printed.names): cell for cell in competing}
    assert {keys: cell.paper for keys, cell in found.items()} == dict(printed.cells)
    assert {keys for keys, cell in found.items() if cell.paper_bold} == set(printed.bold)
    if 6 <= number <= 11:
        for block, (name, value) in zip(table.blocks, printed.chosen.items(), strict=True):
            assert block.rows[0][1][0].row["parameter"] == name
            assert [header for header in block.headers if "*" in header] == [f"**{value:g}**"]


def test_varied_parameters_reach_the_runs():
    for cell in build(8, Study(PAPER, "cifar10")).cells:
        first = cell.experiments[0].first_step
        actual = {"alpha": first.alpha, "beta": first.beta,
                  "learning_rate": first.optimization.learning_rate}  # fmt: skip
        assert actual[cell.row["parameter"]] == cell.column["value"]
    for cell in build(11, Study(PAPER, "cifar10")).cells:
        relabelling = cell.experiments[0].first_step.relabelling
        actual = {"start_epoch": relabelling.start, "stop_epoch": relabelling.stop}
        assert actual[cell.row["parameter"]] == cell.column["value"]


def test_table4_is_the_appendix():
    table = build(4, Study(PAPER, "cifar10"))
    rows = {row[0]: row for row in table.rows}
    assert rows["total"][3] == 1_861_162
    assert (rows["unit2a"][2], rows["unit3b"][2]) == ("64×16×16", "128×8×8")
    printed = paper_source.architecture()  # skips the rest where the source is not at hand
    assert list(rows) == [*printed, "total"]
    for name in (name for name in printed if name.startswith(("unit", "dense"))):
        before, after, *units = printed[name]
        assert f"{before}→{after}" in rows[name][1]
        assert name == "dense" or f"{''.join(units) or 1} pre-activation" in rows[name][1]


def test_table5_is_the_paper():
    for name, *values in build(5, Study(PAPER, "cifar10")).rows:
        for rate, value in zip(tables.TABLE5.keys("noise_rate"), values, strict=True):
            assert value == tables.TABLE5.cells[name.replace(" ", "_"), rate]


@pytest.fixture
def store(tmp_path):
    """Results for every run of Table 1."""
    store, scores = RunStore(tmp_path), {"test": 0.4, "recovery": 0.4}
    for run in with_first_steps(build(1).experiments):
        files.write_json(store.open(run) / "log.json", [{"epoch": 1, "test": 0.4}])
        record(store, run, best=scores, last=scores)
    return store


def results_of(study, store):
    """What the claims read of all tables and figures."""
    return OutputResults(study, [build(study) for build in OUTPUTS], store)


def test_claims_tell_diverged_trials_from_unfinished_ones(store):
    study = replace(STUDY, trials=4)
    second, third = (study.baseline("cross_entropy", "symmetric", 0.5, t) for t in (1, 2))
    files.write_json(store.open(third) / "log.json", [{"test": 0.5}])
    store.save_result(third, {**store.result(second), "id": third.id})
    record(store, second, "diverged", epoch=1)

    def read(method):
        """The numbers and the curves of a method, by trial."""
        results, keys = results_of(study, store), {"method": method, "noise_rate": 0.5}
        cell = results.trials("table1", score="last", accuracy="test", **keys)
        return cell.numbers, results.curve("table1", **keys)

    numbers, curves = read("cross_entropy")
    assert sorted(numbers) == sorted(curves) == [0, 1, 2]
    assert numbers[1] is curves[1] is None and curves[2] == [50.0]
    # A second step whose first step diverged has diverged.
    joint = study.joint("symmetric", 0.5, 1)
    record(store, joint.first_step, "diverged")
    (store.folder(joint) / "result.json").unlink()
    numbers, curves = read("joint")
    assert numbers[1] is curves[1] is None


def test_a_range_without_labels_is_left_out(store):
    """No label is neither all right nor all wrong."""
    study = replace(STUDY, trials=3)
    first, second, third = (study.first_step("asymmetric", 0.4, trial) for trial in range(3))
    for run, numbers in ((first, (10, 0, 5)), (second, (0, 0, 9)), (third, (4, 0, 5))):
        rows = zip((0.99, 0.95, 0.9), numbers, strict=True)
        confidence = [{"from": low, "number": n, "right": n // 2} for low, n in rows]
        record(store, run, confidence=confidence)
    results = results_of(study, store)
    keys = {"kind": "table12", "quantity": "accuracy"}
    assert results.trials(**keys, range="1-0.99").numbers == {0: 50.0, 2: 50.0}
    assert results.trials(**keys, range="0.99-0.95").numbers == {}
    shown = {(c.row["quantity"], c.column["range"]): c for c in build(12, study).cells}
    partly, empty = (shown["accuracy", r] for r in ("1-0.99", "0.99-0.95"))
    assert all(cell.trials(store).complete for cell in (partly, empty))
    assert partly.markdown(store) == "50.0 ± 0.0 (2 of 3 trials)"
    assert empty.markdown(store) == "–"
    assert shown["share", "0.99-0.95"].markdown(store) == "0.0 ± 0.0"
    assert shown["share", "1-0.99"].trials(store).numbers == pytest.approx(
        {0: 1000 / 15, 1: 0, 2: 400 / 9}
    )
    quantities = {c.row["quantity"] for c in build(12, replace(study, data="cifar10")).cells}
    assert quantities == {"accuracy", "number"}


def test_unfinished_and_diverged_cells_say_so(tmp_path):
    store = RunStore(tmp_path)
    cell = next(cell for cell in build(1).cells if cell.competes)
    first, second = cell.experiments
    assert cell.markdown(store) == "…" and not cell.trials(store).complete
    record(store, first, best={"test": 0.5})
    assert not cell.trials(store).complete
    record(store, second, "diverged", epoch=3)
    assert cell.trials(store).complete
    assert cell.markdown(store) == "50.0 (1 of 2 diverged)"


def test_a_table_without_a_finished_trial_says_so(tmp_path):
    text = build(2).text(Results(RunStore(tmp_path), "tiny", "cifar10", "fp32"))
    assert "fp32; no trial has finished yet, [the paper's number]" in text


def of_trials(*numbers, **fields):
    """A cell of runs whose quantity these numbers are."""
    runs = [STUDY.baseline("forward", "symmetric", 0.5, trial) for trial in range(len(numbers))]
    return Cell({}, {}, runs, lambda store, run: numbers[run.seed], **fields)


@pytest.fixture
def finished(tmp_path):
    """Three trials that `of_trials` reads."""
    store = RunStore(tmp_path)
    for run in of_trials(0, 0, 0).experiments:
        record(store, run)
    return store


@pytest.mark.parametrize("data", [
    "cifar10", "cifar10-jpeg", "digits", "clothing1m-standin", "cifar100", "cifar10-images",
])  # fmt: skip
def test_the_papers_numbers_stand_beside_the_papers_data_alone(finished, data):
    block = Block(["x"], [("a", [of_trials(80, 70, 60, paper=91.5)])])
    (shown,) = block.paragraphs(Results(finished, "tiny", data, "fp32"))
    assert ("[91.5]" in shown) == (data in ("cifar10", "cifar10-jpeg"))


def test_nothing_is_the_best_while_another_has_fewer_trials(finished):
    assert of_trials(1, 2, 3, 4).markdown(finished) == "2.0 ± 1.0 (3 of 4 trials …)"
    a, waits = of_trials(80), replace(of_trials(0), experiments=[STUDY.plain("none", 0, 5, 0.1, 9)])
    assert best_of([a, replace(waits, competes=False)], finished) == [a]
    assert best_of([a, waits], finished) == []
    assert best_of([a, of_trials(70)], finished) == [a]
    assert best_of([a, of_trials(70, 70)], finished) == []


def test_a_row_of_different_trials_is_shown_again_where_its_cells_compete(finished):
    """Over the trials that all share: 65.0 of one trial is 5 below 70.0 of three."""
    block = Block(["a", "b"], [("val", [of_trials(80, 70, 60), of_trials(65)])], best="row")
    results = Results(finished, "tiny", "cifar10", "fp32")
    (shown,) = block.paragraphs(results)
    assert "| val, only trial 0 | 80.0 " in shown
    (shown,) = replace(block, best="column").paragraphs(results)
    assert "only trial" not in shown


def test_scaled_schedules_are_said_where_epochs_are_columns():
    assert "Epochs are the paper's; the schedules here are 0.05 times as long" in build(10).note
    assert "Epochs are" not in build(10, Study(PAPER, "cifar10")).note
    assert "Epochs are" not in build(6).note


@pytest.mark.parametrize(("data", "accuracy", "word"), [
    ("clothing1m", 0.72, AGREES),
    ("clothing1m", 0.68, CONTRADICTED),
    ("clothing1m", None, NOT_RUN),
    ("clothing1m-standin", 0.72, None),
])  # fmt: skip
def test_only_clothing1m_decides_whether_forward_is_beaten(tmp_path, data, accuracy, word):
    """The paper quotes 69.84 % for Forward; of other images that says nothing."""
    study, store = Study(CLOTHING1M_DIGITS, data, trials=3), RunStore(tmp_path)
    for trial in study.comparison_trials() if accuracy else ():
        second = study.joint(*REAL, trial)
        for run in (second, second.first_step):
            scores = {"test": accuracy + trial / 1000}
            record(store, run, best=scores, last=scores)
    claims, results = Claims(study, [table3]), Results(store, "digits", data, "fp32")
    assert [claim["word"] for claim in claims.data(results)] == ([word] if word else [])
    written = claims.write(results, tmp_path, tmp_path)
    assert [path.name for path in written] == (["claims.md", "claims.json"] if word else [])
    assert all("than Forward" in path.read_text() for path in written)
