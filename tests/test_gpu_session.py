"""Of benchmarks/gpu_session.sh: verdicts of the smoke test, what is packed, what the next call
takes up. The whole of it runs in test_gpu.py."""

import json
import os
import pickle
import shutil
import sys
from pathlib import Path

import carry_cifar10
import gpu_smoke
import gpu_state
import numpy as np
import pytest
from processes import ROOT, run

from chainer_jo.data import cifar10
from chainer_jo.errors import UserError
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.runs.presets import PAPER
from chainer_jo.runs.provenance import sources_digest


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


def test_what_a_session_has_is_packed_before_the_machine_is_taken_away(tmp_path):
    """Killed in its first script, with what that has come to in the folder that comes back; which
    the next call takes up."""
    project = tmp_path / "project"
    (project / "benchmarks").mkdir(parents=True)
    for name in ("gpu_session.sh", "gpu_state.py"):
        shutil.copy(ROOT / "benchmarks" / name, project / "benchmarks" / name)
    (project / "benchmarks" / "gpu_smoke.py").write_text(
        "import sys, pathlib\n"
        "if '--flags' in sys.argv: print('--precision tf32')\n"
        "else:\n"
        "    print(*sys.argv[1:])\n"
        "    pathlib.Path('gpu-session/smoke.json').write_text('{}')\n"
    )
    (project / "train.py").write_text(
        "import os, signal, time, pathlib\n"
        "pathlib.Path('results').mkdir()\n"
        "pathlib.Path('results/log.json').write_text('an epoch')\n"
        "kernels = pathlib.Path(os.environ['CUPY_CACHE_DIR'])\n"
        "kernels.mkdir()\n"
        "(kernels / 'step.cubin').write_text('compiled')\n"
        "written, packed = time.time(), pathlib.Path(os.environ['OUT'], 'session.tar.0')\n"
        "while time.time() < written + 60:\n"
        "    time.sleep(0.1)\n"
        "    if packed.exists() and packed.stat().st_mtime > written + 1:\n"
        "        os.kill(int(os.environ['SESSION']), signal.SIGKILL)\n"
        "        break\n"
    )
    variables = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "OUT": tmp_path / "out",
                 "RUNS": "train.py", "STEPS": "smoke results", "PACK": "0.5"}  # fmt: skip
    command = ["bash", "-c", "SESSION=$$ exec bash benchmarks/gpu_session.sh 5"]
    run(command, -9, 100, cwd=project, env={k: str(v) for k, v in variables.items()})
    assert gpu_state.unpack(tmp_path / "next", tmp_path / "out") == 5
    assert list((tmp_path / "next" / "gpu-session").glob("*/step.cubin")), "compiled once"
    assert (tmp_path / "next" / "results" / "log.json").read_text() == "an epoch"
    assert (tmp_path / "next" / "gpu-session" / "smoke.json").exists()
    log = (tmp_path / "next" / "gpu-session" / "smoke.log").read_text()
    assert "--precision mixed --json" in log
    # Not the precision asked for: the next call does not take it for passed.
    variables |= {"FROM": tmp_path / "out", "OUT": tmp_path / "second", "STEPS": "smoke"}
    command, env = ["benchmarks/gpu_session.sh", "5"], {k: str(v) for k, v in variables.items()}
    run(command, cwd=project, env=env)
    assert "smoke: exit code 0" in (tmp_path / "second" / "summary.txt").read_text()


def test_the_tests_of_a_session_are_in_every_file_with_a_test_for_gpus():
    """And in no other: what some other file needs may not have been carried there."""
    marked = (path for path in (ROOT / "tests").glob("test_*.py") if "mark.gpu" in path.read_text())
    expected = {f"tests/{path.name}" for path in marked} - {"tests/test_gpu_session.py"}
    script = (ROOT / "benchmarks" / "gpu_session.sh").read_text()
    assert set(script.split("${TESTS:-")[1].split("}")[0].split()) == expected


def test_a_file_that_goes_while_it_is_packed_costs_the_others_nothing(tmp_path, monkeypatch):
    """A worker may outlive by a moment the script that was killed."""
    root, back, read = tmp_path / "here", tmp_path / "back", Path.read_bytes
    (root / "results").mkdir(parents=True)
    for name in ("result.json", "snapshot.npz", "log.json"):
        (root / "results" / name).write_text(name)

    def gone(path):
        (root / "results" / "snapshot.npz").unlink(missing_ok=True)
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", gone)
        assert gpu_state.pack(root, back, 1 << 20) == []
    assert gpu_state.unpack(tmp_path / "there", back) == 2


def test_a_snapshot_of_the_papers_first_step_comes_back(tmp_path, monkeypatch, capsys):
    """Labels, their probabilities in the epoch and in the ten before, parameters and velocity;
    they can hardly be compressed."""
    network = PAPER.network
    model = PreActResNet(3, 10, network.units, network.widths)
    numbers = PAPER.train_images * 10 * (2 + PAPER.average) + 2 * model.count_params()
    path = tmp_path / "results" / "paper" / "runs" / "a" / "snapshot.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(os.urandom(4 * numbers))
    monkeypatch.chdir(tmp_path)
    gpu_state.main(["pack", "back"])
    assert "left out" not in capsys.readouterr().out
    sizes = [part.stat().st_size for part in (tmp_path / "back").iterdir()]
    assert len(sizes) <= 7 and max(sizes) <= 16 << 20
    # 64 MiB go with a call: this, CIFAR-10 as JPEG, two wheels and the project without its results.
    assert sum(sizes) + (27 << 20) <= 64 << 20
    assert gpu_state.unpack(tmp_path / "there", tmp_path / "back") == 1


def test_cifar10_comes_in_three_parts_and_is_whole_again(tmp_path):
    rng, official, carried = np.random.default_rng(0), tmp_path / "official", tmp_path / "images"
    official.mkdir()
    names = [f"class {i}" for i in range(10)]
    (official / "batches.meta").write_bytes(pickle.dumps({"label_names": names}))
    for name in carry_cifar10.BATCHES:
        pixels, labels = rng.integers(256, size=(4, 3072), dtype=np.uint8), rng.integers(10, size=4)
        batch = {"data": pixels, "labels": labels.tolist()}
        (official / name).write_bytes(pickle.dumps(batch))
    carry_cifar10.main(["pack", str(official), str(carried)])
    parts = sorted(path for path in tmp_path.iterdir() if path.name.startswith("images."))
    assert [len(list(path.iterdir())) for path in parts] == [4, 4, 4]
    carry_cifar10.main(["unpack", str(carried), str(tmp_path / "there")])
    ours, theirs = cifar10.load_folder(tmp_path / "there"), cifar10.load_folder(official)
    assert ours.fingerprint() == theirs.fingerprint() and ours.name == theirs.name
    shutil.rmtree(parts[1])
    with pytest.raises(SystemExit):
        carry_cifar10.main(["unpack", str(carried), str(tmp_path / "there")])


def test_labels_are_packed_before_snapshots_and_the_newest_of_these(tmp_path):
    root, back = tmp_path / "here", tmp_path / "back"
    for age, folder in enumerate("cba"):
        for name in ("labels.npz", "snapshot_iter_30"):
            path = root / "results" / "paper" / "runs" / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(20_000))
            os.utime(path, (1e9 - age, 1e9 - age))
    left_out = gpu_state.pack(root, back, 115_000)
    assert [path.parts[-2:] for path in left_out] == [
        ("b", "snapshot_iter_30"), ("a", "snapshot_iter_30"),
    ]  # fmt: skip


def test_packing_that_is_cut_off_leaves_what_was_packed_before(tmp_path, monkeypatch):
    root, back = tmp_path / "here", tmp_path / "back"
    (root / "results").mkdir(parents=True)
    packed, write = root / "results" / "a.json", Path.write_bytes
    monkeypatch.setattr(gpu_state, "PART", 9000)
    packed.write_bytes(os.urandom(30_000))
    gpu_state.pack(root, back, 1 << 20)
    packed.write_bytes(os.urandom(50_000))

    def until_the_disk_is_full(path, content):
        if path.name.startswith("3"):
            raise OSError("disk full")
        return write(path, content)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(Path, "write_bytes", until_the_disk_is_full)
        gpu_state.pack(root, back, 1 << 20)
    assert gpu_state.unpack(tmp_path / "there", back) == 1
    assert (tmp_path / "there" / "results" / "a.json").stat().st_size == 30_000


def test_what_there_is_no_room_for_is_left_out_by_kind(tmp_path, monkeypatch):
    root, back = tmp_path / "here", tmp_path / "back"
    files = {"result.json": 1000, "labels.npz": 2000, "snapshot_iter_30": 40_000,
             "model.npz": 7000, "step.cubin": 1500, "lock": 1, "x.tmp": 1}  # fmt: skip
    for name, size in files.items():
        path = root / "results" / "paper" / "runs" / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    for committed in ("reference/old.json", "README.md"):
        path = root / "results" / committed
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    monkeypatch.setattr(gpu_state, "PART", 9000)
    assert [p.name for p in gpu_state.pack(root, back, 40_000)] == ["snapshot_iter_30"]
    left_out = ["labels.npz", "snapshot_iter_30", "model.npz", "step.cubin"]
    assert [p.name for p in gpu_state.pack(root, back, 16_200)] == left_out
    assert gpu_state.pack(root, back, 1 << 20) == []
    assert max(p.stat().st_size for p in back.iterdir()) <= 9000 and len(list(back.iterdir())) > 5
    assert gpu_state.unpack(tmp_path / "there", back) == 5
    for name in ("result.json", "labels.npz", "snapshot_iter_30", "model.npz"):
        place = Path("results/paper/runs/a", name)
        assert (root / place).read_bytes() == (tmp_path / "there" / place).read_bytes()
