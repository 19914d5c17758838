"""Verdicts, precisions and resuming of benchmarks/gpu_smoke.py."""

import json

import gpu_smoke
import pytest

from chainer_jo.errors import UserError
from chainer_jo.reproduction.running.provenance import sources_digest


def test_flags_are_of_the_best_precision_that_passed():
    ok, bad = {"verdict": "ok"}, {"verdict": "diverged"}
    both = {"called": ok, "replayed": ok, "graph": "ok", "whole": ok}
    called = {"called": ok, "replayed": bad, "whole": ok}
    replayed = {"called": ok, "replayed": ok, "graph": "ok"}
    broken = {"error": "the process ended with -11"}
    cases = [
        ({"fp32": both, "tf32": both, "mixed": both}, "mixed", "--precision mixed"),
        ({"fp32": both, "tf32": both, "mixed": both}, "fp32", "--precision fp32"),
        ({"fp32": both, "tf32": both, "mixed": broken}, "mixed", "--precision tf32"),
        ({"fp32": both, "mixed": called}, "mixed", "--precision fp32"),
        ({"fp32": both, "mixed": {**both, "whole": bad}}, "mixed", "--precision fp32"),
        ({"fp32": called, "mixed": called}, "mixed", "--precision mixed --no-graph"),
        ({"mixed": {"called": ok, **broken}}, "mixed", "--precision mixed --no-graph"),
        ({"fp32": both, "mixed": {**replayed, **broken}}, "mixed", "--precision fp32"),
        # It broke down when all was done.
        ({"fp32": both, "mixed": {**both, **broken}}, "mixed", "--precision mixed"),
        # Time ran out before the whole epoch.
        ({"fp32": both, "mixed": replayed}, "mixed", "--precision mixed"),
    ]
    for results, wanted, expected in cases:
        assert gpu_smoke.flags(results, wanted) == expected
    with pytest.raises(UserError, match="no precision"):
        gpu_smoke.flags({"fp32": broken}, "mixed")
    assert gpu_smoke.problems({"fp32": both, "tf32": called, "mixed": broken}) == [
        "tf32, replayed: diverged", "mixed: the process ended with -11",
    ]  # fmt: skip


def test_graphs_that_were_never_captured_are_not_called_ok():
    """Where a capture is refused, steps are called: they agree with those that were called."""
    called = {"log": {"loss": 1.0, "elapsed_time": 3.0}, "replays": 0}
    assert gpu_smoke.graph_verdict(called, called) == "no step was captured"
    replayed = {"log": {"loss": 1.0, "elapsed_time": 2.0}, "replays": 5}
    assert gpu_smoke.graph_verdict(called, replayed) == "ok"
    other = {"log": {"loss": 1.1, "elapsed_time": 2.0}, "replays": 5}
    assert "differ" in gpu_smoke.graph_verdict(called, other)


def test_an_epoch_is_right_only_if_it_ended_on_the_engine_with_the_losses_of_a_cpu():
    log = {"loss": 4.0, "cross_entropy": 2.3, "entropy": 2.2, "prior": 0.017}
    reference = {"log": log}
    right = {"state": "finished", "engine": "cudnn", "log": log}
    assert gpu_smoke.verdict(right, reference) == "ok"
    assert gpu_smoke.verdict({**right, "state": "diverged"}, reference) == "diverged"
    assert "stock" in gpu_smoke.verdict({**right, "engine": "stock"}, reference)
    assert set(log) == set(gpu_smoke.TOLERANCE)
    for name, tolerance in gpu_smoke.TOLERANCE.items():
        for factor, expected in (
            (1 + 0.9 * tolerance, "ok"), (1 - 0.9 * tolerance, "ok"), (1 + 1.1 * tolerance, name),
            (1 - 1.1 * tolerance, name), (float("nan"), name),
        ):  # fmt: skip
            found = {**right, "log": {**log, name: factor * log[name]}}
            assert gpu_smoke.verdict(found, reference).split()[0] == expected
            assert gpu_smoke.verdict(found, None) == "ok"


def test_the_smoke_test_begins_with_the_precision_asked_for_and_goes_on(
    monkeypatch, tmp_path, capsys
):
    """What a precision has shown is on disk before it breaks down, or is cut off; the next call is
    done with those that have passed."""
    entry = {"verdict": "ok", "seconds_before": 1, "seconds": 2, "log": {}}
    here = {"code": sources_digest(), "gpu": "NVIDIA H100"}
    monkeypatch.setattr(gpu_smoke, "machine", lambda: here)
    begun = {**here, "called": entry}
    shown = begun, {**begun, "replayed": entry, "graph": "ok"}
    whole = {**shown[1], "whole": entry}
    program, path = tmp_path / "check.py", tmp_path / "smoke.json"
    program.write_text(
        "import os, json, sys, pathlib\n"
        "precision = sys.argv[-1]\n"
        f"steps = {[*shown, whole]!r}\n"
        "print('a library says something')\n"
        "for step in steps if precision == 'fp32' else steps[:2]:\n"
        "    print(json.dumps(step), flush=True)\n"
        "if precision == 'mixed': os.abort()\n"
    )
    monkeypatch.setattr(gpu_smoke, "__file__", str(program))
    asked, in_a_process = [], gpu_smoke.in_a_process

    def recorded(data, precision):
        asked.append(precision)
        for number, result in enumerate(in_a_process(data, precision)):
            yield result
            if precision == "tf32":
                assert json.loads(path.read_text())["tf32"] == shown[number]
                if number:
                    raise KeyboardInterrupt

    monkeypatch.setattr(gpu_smoke, "in_a_process", recorded)
    command = ["--data", "x", "--json", str(path), "--precision"]
    with pytest.raises(KeyboardInterrupt):
        gpu_smoke.main([*command, "fp32"])
    assert asked == ["fp32", "mixed", "tf32"]
    results = json.loads(path.read_text())
    error = "the process ended with -6"
    assert results == {"fp32": whole, "mixed": {**shown[1], "error": error}, "tf32": shown[1]}
    assert capsys.readouterr().out.count("ok; 1.0 s before the epoch, 2.0 s with it") == 7
    asked.clear()
    with pytest.raises(KeyboardInterrupt):
        gpu_smoke.main([*command, "tf32"])
    assert asked == ["tf32"], "the one asked for comes first"
    with pytest.raises(KeyboardInterrupt):
        gpu_smoke.main([*command, "fp32"])
    assert asked == ["tf32", "mixed", "tf32"], "fp32 has passed"
    assert gpu_smoke.main(["--flags", str(path), "--precision", "fp32"]) == 0
    for changed in ({"gpu": "NVIDIA H200"}, {"code": "other code"}):
        monkeypatch.setattr(gpu_smoke, "machine", lambda changed=changed: here | changed)
        asked.clear()
        assert gpu_smoke.main(["--flags", str(path), "--precision", "fp32"]) == 2
        with pytest.raises(KeyboardInterrupt):
            gpu_smoke.main([*command, "fp32"])
        assert asked[0] == "fp32", "other code passed, or this code on another GPU"
