"""benchmarks/label_errors.py: what it scores, that it goes on where it stopped, what it prints."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cleanlab", reason="extra bench")
BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("label_errors")
    for name in ("label_errors", "machine"):
        sys.modules.pop(name, None)


@pytest.fixture
def task(benchmark):
    rng = np.random.default_rng(0)
    true = (np.arange(240) % 3).astype(np.int32)
    features = (np.eye(3, 5)[true] * 4 + rng.normal(size=(240, 5))).astype(np.float32)
    return benchmark.Task(
        "blobs",
        lambda: benchmark.FeatureSet(features[:180]),
        benchmark.Settings(epochs=6, quiet=1, average=2),
        features[:180],
        true[:180],
        features[180:],
        true[180:],
        ("a", "b", "c"),
    )


def test_every_method_finds_wrong_labels(benchmark, task):
    given = task.given("symmetric", 0.2, 0)
    bad = given != task.true
    for name in benchmark.methods(task):
        found = benchmark.measure(task, name, given, 0)
        assert found["f1"] > 0.8 and found["right"] > found["right_before"], name
        assert found["right_before"] == pytest.approx(1 - bad.mean())
        assert found["test"] > 0.9 and found["seconds"] > 0


def test_scores_are_those_of_the_verdict(benchmark, task, monkeypatch):
    given = task.given("symmetric", 0.2, 0)
    bad = np.flatnonzero(given != task.true)
    good = np.flatnonzero(given == task.true)

    def verdict(task, given, seed):
        wrong = np.zeros(len(given), bool)
        wrong[bad[:10]] = wrong[good[:5]] = True
        new = given.copy()
        new[bad[:10]] = task.true[bad[:10]]
        return benchmark.Verdict(wrong, new, 1.0 - wrong)

    monkeypatch.setattr(benchmark, "methods", lambda task: {"it": verdict})
    found = benchmark.measure(task, "it", given, 0)
    assert found["precision"] == pytest.approx(10 / 15)
    assert found["recall"] == pytest.approx(10 / len(bad))
    assert found["f1"] == pytest.approx(20 / (15 + len(bad)))
    assert found["right"] == pytest.approx((len(good) + 10) / len(given))


def test_goes_on_where_it_stopped_and_prints_all(benchmark, task, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "digits_task", lambda name: task)
    monkeypatch.setattr(benchmark, "NOISES", (("symmetric", 0.4),))
    file = tmp_path / "found.json"
    words = ["--tasks", "digits, pixels", "--methods", benchmark.OURS, benchmark.CLEANLAB]
    words += ["--json", str(file), "--seeds", "0"]
    assert benchmark.main(words) == 0
    first = json.loads(file.read_text())["records"]
    assert benchmark.main([*words, "1"]) == 0
    records = json.loads(file.read_text())["records"]
    assert records[:2] == first and len(records) == 4
    text = file.with_suffix(".md").read_text()
    assert "## blobs, symmetric 0.4" in text and "| ours | 2 |" in text
    difference = np.mean(
        [a["f1"] - b["f1"] for a, b in zip(*[
            sorted((r for r in records if r["method"] == name), key=lambda r: r["seed"])
            for name in (benchmark.OURS, benchmark.CLEANLAB)
        ], strict=True)]
    )  # fmt: skip
    assert f"| blobs, symmetric 0.4 | {100 * difference:+.1f} (least" in text


def test_a_file_of_other_features_is_refused(benchmark, tmp_path, capsys):
    file = tmp_path / "few.npz"
    np.savez(file, features=np.zeros((7, 2)))
    assert benchmark.main(["--features", str(file)]) == 2
    assert "expected 50000 rows" in capsys.readouterr().err
    assert benchmark.main(["--features", str(tmp_path / "none.npz")]) == 2
