"""What the GPU benchmark computes without a GPU."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import processes
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def engines():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import engines_cuda

        yield engines_cuda
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_speeds_follow_from_times(engines):
    entry = {"name": "chainer_jo/mixed-graph", "median_s": 0.002}
    lines = engines.annotate({"network": "paper", "batch": 128, "entries": [entry]})
    assert entry["images_per_s"] == 64_000
    assert entry["seconds_per_epoch"] == pytest.approx(0.703125)
    assert "64000" in lines[1] and "0.703" in lines[1]


def test_every_goal_compares_engines_that_there_are(engines):
    for _, ours, others, _ in engines.GOALS:
        assert ours in engines.ENTRIES and others and set(others) <= set(engines.ENTRIES)


def test_an_epoch_is_as_long_as_cifar10s(engines):
    import workload

    data = workload.tiled(workload.load("digits"), workload.EPOCH)
    assert len(data.images) == len(data.labels) >= workload.EPOCH
    assert np.array_equal(data.images[:640], data.images[640:1280])


def test_without_a_gpu_it_says_so_in_one_line():
    pytest.importorskip("chainer")
    command = [sys.executable, ROOT / "benchmarks" / "train_step.py", "--device", "cuda"]
    environment = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    said = processes.run(command, 2, env=environment).stderr
    assert said.count("\n") == 1 and "--device cuda: no CUDA GPU" in said


def test_groups_name_every_engine_and_begin_with_what_the_goals_compare(engines):
    assert {name for group in engines.GROUPS for name in group} == set(engines.ENTRIES)
    first = set(engines.GROUPS[0])
    for _, ours, others, _ in engines.GOALS:
        assert ours in first and first & set(others)
    compiled = [i for i, g in enumerate(engines.GROUPS) if any("compiled" in n for n in g)]
    eager = [i for i, g in enumerate(engines.GROUPS) if any("graph" not in n for n in g)]
    assert max(compiled) > max(eager[:-1]), "what takes minutes to compile comes last"


@pytest.fixture
def steps(engines, monkeypatch):
    """`train_step` on workers that are none, by the seconds that each answers with."""
    import train_step
    from worker import WorkerEnded
    from workload import Missing

    asked = []

    class Worker:
        def __init__(self, engines, name, *options):
            if name.startswith("torch"):
                raise Missing("torch is not installed")
            self.name = name

        def ask(self, request):
            asked.append(self.name)
            if self.name == "chainer_jo/fp32-graph":
                raise WorkerEnded("the process ended with -9")
            return {"seconds": 0.001 * len(asked), "peak_bytes": 1e6 * len(asked)}

        def stop(self):
            pass

    machine = sys.modules.setdefault("machine_cuda", __import__("machine_cuda"))
    monkeypatch.setattr(machine, "describe", lambda threads: {"gpu": "none", "threads": threads})
    monkeypatch.setattr(train_step, "Worker", Worker)
    return train_step, asked


def test_what_was_measured_is_there_after_each_group(engines, steps, tmp_path, monkeypatch):
    """Cut off in the third group, and again with no time left; the same command ends it."""
    train_step, asked = steps
    path = tmp_path / "train_step.json"
    command = ["--device", "cuda", "--rounds", "2", "--json", str(path)]
    measure = train_step.measure

    def cut_off(module, names, options):
        if names == list(engines.GROUPS[2]):
            raise KeyboardInterrupt
        return measure(module, names, options)

    monkeypatch.setattr(train_step, "measure", cut_off)
    with pytest.raises(KeyboardInterrupt):
        train_step.main(command)
    found = json.loads(path.read_text())
    assert found["groups"] == [list(group) for group in engines.GROUPS[:2]]
    turns = {entry["name"]: entry["turns"] for entry in found["entries"]}
    assert turns["chainer_jo/mixed-graph"] == 4 and turns["chainer"] == 2
    assert found["missing"]["torch/bf16-nhwc-graph"] == "torch is not installed"

    monkeypatch.setattr(train_step, "measure", measure)
    before = len(asked)
    assert train_step.main([*command, "--minutes", "0"]) == 0
    assert len(asked) == before and json.loads(path.read_text()) == found
    assert train_step.main(command) == 0
    found = json.loads(path.read_text())
    assert found["missing"]["chainer_jo/fp32-graph"] == "the process ended with -9"
    assert {e["name"] for e in found["entries"]} | set(found["missing"]) == set(engines.ENTRIES)
    before = len(asked)
    assert train_step.main(command) == 0 and len(asked) == before
    assert train_step.main([*command, "--batch", "64"]) == 0 and len(asked) > before


def test_no_module_of_the_benchmarks_imports_in_a_circle():
    folder = ROOT / "benchmarks"
    imports = {
        path.stem: {
            name
            for name in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.M)
            if (folder / f"{name}.py").exists()
        }
        for path in folder.glob("*.py")
    }

    def reached(start, seen=()):
        for name in imports[start]:
            assert name not in (start, *seen), f"{name} imports itself through {seen}"
            reached(name, (start, *seen))

    for module in imports:
        reached(module)
