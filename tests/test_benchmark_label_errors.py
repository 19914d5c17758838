"""benchmarks/label_errors.py: what it scores, that it goes on where it stopped, what it prints."""

import json

import label_errors as benchmark
import numpy as np
import pytest

from chainer_jo.method import noise


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    true = (np.arange(240) % 3).astype(np.int32)
    features = (np.eye(3, 5)[true] * 4 + rng.normal(size=(240, 5))).astype(np.float32)

    def draw(seed):
        rng = np.random.default_rng(seed)
        return np.arange(240), noise.symmetric(true, 0.4, 3, rng)

    return benchmark.Task("blobs", features, true, draw)


def test_every_method_finds_wrong_labels(task):
    pytest.importorskip("cleanlab", reason="extra bench")
    for name in benchmark.METHODS:
        found = benchmark.measure(task, name, 0)
        assert found["f1"] > 0.7 and found["right"] > found["right_before"], name
        assert found["right_before"] == pytest.approx((task.draw(0)[1] == task.true).mean())
        assert not found["doubt"] and found["processor_seconds"] > 0


def test_scores_are_those_of_the_verdict(task, monkeypatch):
    _, given = task.draw(0)
    bad = np.flatnonzero(given != task.true)
    good = np.flatnonzero(given == task.true)

    def verdict(features, given, seed):
        wrong = np.zeros(len(given), bool)
        wrong[bad[:10]] = wrong[good[:5]] = True
        new = given.copy()
        new[bad[:10]] = task.true[bad[:10]]
        new[good[:5]] = (given[good[:5]] + 1) % 3
        return benchmark.Verdict(wrong, new, 1.0 - wrong)

    monkeypatch.setitem(benchmark.METHODS, "it", verdict)
    found = benchmark.measure(task, "it", 0)
    assert found["precision"] == pytest.approx(10 / 15)
    assert found["recall"] == pytest.approx(10 / len(bad))
    assert found["f1"] == pytest.approx(20 / (15 + len(bad)))
    assert found["right"] == pytest.approx((len(good) + 5) / len(given))
    assert found["broken"] == 5


def test_goes_on_where_it_stopped_and_prints_all(task, tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "digits_tasks", lambda: [task])
    file = tmp_path / "found.json"
    pytest.importorskip("cleanlab", reason="extra bench")
    names = [benchmark.RELABEL, benchmark.REGRESSION]
    words = ["--methods", *names, "--json", str(file), "--seeds", "0"]
    assert benchmark.main(words) == 0
    first = json.loads(file.read_text())["records"]
    assert benchmark.main([*words, "1"]) == 0
    records = json.loads(file.read_text())["records"]
    assert records[:2] == first and len(records) == 4
    text = file.with_suffix(".md").read_text()
    ours, theirs = (
        f"{100 * np.mean([r['f1'] for r in records if r['method'] == name]):.1f}" for name in names
    )
    (row,) = [line.split(" | ") for line in text.splitlines() if line.startswith("| blobs |")]
    assert row[2] == ours and row[5:7] == ["regression", theirs]
    assert "## blobs (" in text and f"| **{ours} ± " in text
    assert benchmark.main([*words, "--threads", "2"]) == 0
    assert len(json.loads(file.read_text())["records"]) == 2, "others were of one thread"
