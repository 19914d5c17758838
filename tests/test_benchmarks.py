"""Benchmarks: one small run each, and committed pages that follow from their records."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import annotators
import engines_cuda as engines
import gpu_smoke
import human_labels
import label_errors
import label_errors_of_images
import label_errors_page
import label_errors_rare
import label_errors_scale
import label_tasks
import numpy as np
import pytest
import train_step
import workload
from processes import ROOT, run
from sklearn.metrics import confusion_matrix

from chainer_jo.errors import UserError
from chainer_jo.method import noise
from chainer_jo.reproduction.experiments import presets


def test_steps_of_every_engine_on_the_digits_network(tmp_path, capsys):
    path, names = tmp_path / "cpu.json", ["chainer", "chainer_jo/fp32"]
    arguments = ["--network", "digits", "--batch", "4", "--threads", "1", "--rounds", "1"]
    assert train_step.main([*arguments, "--only", *names, "--json", str(path)]) == 0
    entries = json.loads(path.read_text())["entries"]
    assert [entry["name"] for entry in entries] == names
    assert all(0 < entry["fastest_s"] <= entry["median_s"] < 60 for entry in entries)
    assert "chainer_jo/fp32" in capsys.readouterr().out
    paper, network = presets.PAPER, presets.PAPER.network
    shapes = map(tuple, (network.units, network.widths, paper.image_shape))
    assert workload.NETWORKS["paper"] == (*shapes, paper.batch_size)


def test_the_time_of_a_step_is_the_devices():
    """Each takes 3 ms there, however long Python takes; warming up is not counted."""
    done, free = [], iter([1000, 400])
    event = lambda: SimpleNamespace(ms=3.0 * len(done), synchronize=int)  # noqa: E731
    elapsed = lambda first, last: last.ms - first.ms  # noqa: E731
    step = engines.DeviceStep(lambda: lambda: done.append(1), event, elapsed, lambda: next(free))
    assert step.time() == {"seconds": pytest.approx(0.003), "peak_bytes": 600}
    assert (len(done) - engines.WARM_UP) % engines.STEPS == 0


def test_without_a_gpu_it_says_so_in_one_line():
    command = [sys.executable, ROOT / "benchmarks" / "train_step.py", "--device", "cuda"]
    said = run(command, 2, env={"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}).stderr
    assert said.count("\n") == 1 and "--device cuda: no CUDA GPU" in said


OK, BAD = {"verdict": "ok"}, {"verdict": "diverged"}
BOTH = {"called": OK, "replayed": OK, "graph": "ok", "whole": OK}
BROKEN = {"error": "the process ended with -11"}


@pytest.mark.parametrize("results, wanted, expected", [
    ({"fp32": BOTH, "tf32": BOTH, "mixed": BOTH}, "mixed", "--precision mixed"),
    ({"fp32": BOTH, "tf32": BOTH, "mixed": BROKEN}, "mixed", "--precision tf32"),
    ({"fp32": BOTH, "mixed": {**BOTH, "whole": BAD}}, "mixed", "--precision fp32"),
    ({"mixed": {"called": OK, **BROKEN}}, "mixed", "--precision mixed --no-graph"),
    ({"fp32": BOTH, "mixed": {**BOTH, **BROKEN}}, "mixed", "--precision mixed"),
])  # fmt: skip
def test_flags_are_of_the_best_precision_that_passed_on_a_gpu(results, wanted, expected):
    assert gpu_smoke.flags(results, wanted) == expected
    with pytest.raises(UserError, match="no precision"):
        gpu_smoke.flags({"fp32": BROKEN}, wanted)


def test_an_epoch_is_right_only_if_it_ended_on_the_engine_with_the_losses_of_a_cpu():
    log = dict.fromkeys(gpu_smoke.TOLERANCE, 2.0)
    right = {"state": "finished", "engine": "cudnn", "log": log}
    assert gpu_smoke.verdict(right, {"log": log}) == "ok"
    assert gpu_smoke.verdict({**right, "state": "diverged"}, {"log": log}) == "diverged"
    assert "stock" in gpu_smoke.verdict({**right, "engine": "stock"}, {"log": log})
    for name, tolerance in gpu_smoke.TOLERANCE.items():
        for factor in (1 + 1.1 * tolerance, 1 - 1.1 * tolerance, float("nan")):
            found = {**right, "log": {**log, name: factor * log[name]}}
            assert gpu_smoke.verdict(found, {"log": log}).split()[0] == name


@pytest.mark.parametrize("module, columns", [
    (annotators, (annotators.RIGHT,)),
    (human_labels, (label_errors_page.SCORES,)), (label_errors_rare, (label_errors_page.SCORES,)),
    (label_errors, ()), (label_errors_of_images, ()),
])  # fmt: skip
def test_committed_pages_follow_from_their_records(module, columns):
    file = Path(module.__file__).parent / "results" / f"{module.__name__}.json"
    page = label_errors_page.markdown(json.loads(file.read_text()), module.summary, *columns)
    assert file.with_suffix(".md").read_text() == page


def test_the_twin_of_labels_of_people_has_their_transition_matrix_and_no_looks():
    true = np.arange(30_000, dtype=np.int32) % 3
    given = np.where(np.arange(30_000) % 10 == 0, (true + 1) % 3, true)  # one in ten, by its place
    human, twin = human_labels.human_tasks(np.zeros((30_000, 2)), true, {"worse": given})
    np.testing.assert_array_equal(human.draw(1)[1], given)
    drawn = twin.draw(1)[1]
    expected = confusion_matrix(true, given, normalize="true")
    np.testing.assert_allclose(confusion_matrix(true, drawn, normalize="true"), expected, atol=0.01)
    assert np.mean(drawn[::10] == true[::10]) == pytest.approx(0.9, abs=0.02)


def test_rare_errors_have_their_rates_and_pairs(tmp_path):
    np.savez(tmp_path / "f.npz", features=np.ones((50_000, 2), np.float16))
    pairs = {"cats called dogs": {(3, 5)}}
    pairs["the paper's pairs"] = {(9, 1), (2, 0), (4, 7), (3, 5), (5, 3)}
    for task in label_tasks.rare_errors_tasks(tmp_path / "f.npz"):
        kind, rate = task.name.removesuffix(" %").rsplit(", ", 1)
        _, given = task.draw(5)
        wrong = given != task.true
        assert wrong.mean() == pytest.approx(float(rate) / 100)
        found = set(zip(task.true[wrong].tolist(), given[wrong].tolist(), strict=True))
        assert found <= pairs.get(kind, found)


def test_scores_of_a_method_are_those_of_its_verdict():
    true = (np.arange(240) % 3).astype(np.int32)
    features = np.eye(3, 5)[true].astype(np.float32) * 4
    given = noise.symmetric(true, 0.4, 3, np.random.default_rng(0))
    task = label_tasks.Task("blobs", features, true, lambda seed: (np.arange(240), given))
    bad, good = np.flatnonzero(given != true), np.flatnonzero(given == true)
    wrong, new = np.isin(np.arange(240), [*bad[:10], *good[:5]]), given.copy()
    new[bad[:10]], new[good[:5]] = true[bad[:10]], (given[good[:5]] + 1) % 3
    verdict = label_errors.Verdict(wrong, new, 1.0 - wrong)
    found = label_errors.measure(task, lambda *_: verdict, 0)
    assert (found["precision"], found["recall"]) == (10 / 15, 10 / len(bad))
    assert found["right"] == (len(good) + 5) / 240 and found["broken"] == 5
    for name in (label_errors.RELABEL, "a network disagrees"):
        found = label_errors.measure(task, label_errors.METHODS[name], 0)
        assert found["f1"] > 0.7 and found["right"] > found["right_before"], name


def test_costs_of_many_rows(tmp_path, capsys):
    """Rows beyond the file's rows are made of three rows of one class."""
    known = np.repeat(np.eye(10, 12), 5000, axis=0) + np.arange(50_000)[:, None] % 7 / 100
    np.savez(file := tmp_path / "f.npz", features=known.astype(np.float16))
    features, true = label_errors_scale.rows(str(file), 50_400)
    assert features.dtype == np.float32 and (features[:, :10].argmax(axis=1) == true).all()
    assert (np.bincount(true[:50_000]) == 5000).all() and set(true[50_000:]) == set(range(10))
    words = ["--features", str(file), "--numbers", "400", "--methods", "relabel", "--here"]
    label_errors_scale.main(words)
    found = json.loads(capsys.readouterr().out)
    assert found["right"] > 0.95 > found["right_before"] and found["processor_seconds"] > 0
    results = ROOT / "benchmarks/results/label_errors_scale.json"
    page = label_errors_scale.markdown(json.loads(results.read_text()))
    assert page == results.with_suffix(".md").read_text()
