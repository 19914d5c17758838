"""What the GPU benchmark computes without a GPU."""

import gc
import json
import runpy
import sys
import time
import weakref
from itertools import repeat
from types import SimpleNamespace
from unittest.mock import MagicMock

import engines_cuda as engines
import machine_cuda
import numpy as np
import pytest
import train_step
import workload
from processes import ROOT, run
from worker import WorkerEnded


def test_speeds_follow_from_times():
    entry = {"name": "chainer_jo/mixed-graph", "median_s": 0.002}
    lines = engines.annotate({"network": "paper", "batch": 128, "entries": [entry]})
    assert entry["images_per_s"] == 64_000
    assert entry["seconds_per_epoch"] == pytest.approx(0.703125)
    assert "64000" in lines[1] and "0.703" in lines[1]


def test_the_time_of_a_step_is_the_devices():
    """Each takes 3 ms there, whatever Python takes to ask for it; what is taken before it is timed
    is not counted."""
    done, free = [], iter([1000, 400])

    class Event:
        def __init__(self):
            self.milliseconds = 3.0 * len(done)

        def synchronize(self):
            pass

    elapsed = lambda first, last: last.milliseconds - first.milliseconds  # noqa: E731
    step = engines.DeviceStep(lambda: lambda: done.append(1), Event, elapsed, lambda: next(free))
    assert len(done) == engines.WARM_UP
    timed = step.time()
    assert timed == {"seconds": pytest.approx(0.003), "peak_bytes": 600}
    assert (len(done) - engines.WARM_UP) % engines.STEPS == 0


def test_each_engine_is_what_its_name_says():
    for name, entry in engines.ENTRIES.items():
        project, _, how = name.partition("/")
        options = entry.keywords
        if project == "torch":
            precision, mode = how.partition("-x")[0].split("-nhwc")
            assert (options["precision"], options["mode"]) == (precision, mode[1:])
        elif how not in ("", "stock"):
            assert options["precision"] == how.split("-")[0]
            assert options["graph"] == ("graph" in how) != ("eager" in how)
            assert ("fused" in options) == ("fused" in how)
        assert options.get("count", 1) == int(how.partition("-x")[2] or 1)


def test_several_models_take_turns_on_their_streams_and_their_steps_count_each():
    """A round of three takes 6 ms until the device is idle: 2 ms a step."""
    done, inside, clock = [], [], iter(range(10**6))

    class Stream:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            inside.append(self.number)

        def __exit__(self, *_):
            inside.pop()

    def build():
        (stream,) = inside
        return lambda: done.append((stream, *inside))

    rounds = lambda: SimpleNamespace(milliseconds=2.0 * len(done), synchronize=int)  # noqa: E731
    step = engines.DeviceStep(
        lambda: engines.together(build, [Stream(i) for i in range(3)]),
        rounds,
        lambda first, last: last.milliseconds - first.milliseconds,
        lambda: next(clock),
        count=3,
    )
    assert step.time()["seconds"] == pytest.approx(0.002)
    assert done[:4] == [(0, 0), (1, 1), (2, 2), (0, 0)]


def test_an_idle_device_is_a_moment_after_all_its_work():
    waited = []
    first = engines.IdleDevice(lambda: waited.append(time.sleep(0.01)))
    last = engines.IdleDevice(lambda: waited.append(time.sleep(0.02)))
    assert len(waited) == 2 and 20 <= engines.milliseconds(first, last) < 1000


def test_what_pytorchs_graph_reads_is_kept(monkeypatch):
    """Or else other arrays come to lie there, and labels are none any more."""
    for name in ("torch", "torch.nn", "torch.nn.functional", "torch_network"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    labels = np.zeros(3)
    known = weakref.ref(labels)
    captured = runpy.run_path(ROOT / "benchmarks" / "torch_cuda.py")["_captured"]
    step = captured(lambda held=labels: None, repeat([]))
    del labels
    gc.collect()
    step()
    assert known() is not None
    del step
    gc.collect()
    assert known() is None


def test_an_epoch_is_as_long_as_cifar10s():
    data = workload.tiled(workload.load("digits"), workload.EPOCH)
    assert len(data.images) == len(data.labels) >= workload.EPOCH
    assert np.array_equal(data.images[:640], data.images[640:1280])


def test_without_a_gpu_it_says_so_in_one_line():
    command = [sys.executable, ROOT / "benchmarks" / "train_step.py", "--device", "cuda"]
    environment = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    said = run(command, 2, env=environment).stderr
    assert said.count("\n") == 1 and "--device cuda: no CUDA GPU" in said


def test_groups_name_every_engine_and_begin_with_what_the_goals_compare():
    assert {name for group in engines.GROUPS for name in group} == set(engines.ENTRIES)
    first = set(engines.GROUPS[0])
    for _, ours, others, _ in engines.GOALS:
        assert ours in first and first & set(others)
    compiled = [i for i, g in enumerate(engines.GROUPS) if any("compiled" in n for n in g)]
    eager = [i for i, g in enumerate(engines.GROUPS) if any("graph" not in n for n in g)]
    assert max(compiled) > max(eager[:-1]), "what takes minutes to compile comes last"


@pytest.fixture
def asked(monkeypatch):
    """`train_step` on workers that are none, by the seconds that each answers with; their names in
    the order in which they are asked."""
    asked = []

    class Worker:
        def __init__(self, engines, name, *options):
            if name.startswith("torch"):
                raise workload.Missing("torch is not installed")
            self.name = name

        def ask(self, request):
            asked.append(self.name)
            if self.name == "chainer_jo/fp32-graph":
                raise WorkerEnded("the process ended with -9")
            return {"seconds": 0.001 * len(asked), "peak_bytes": 1e6 * len(asked)}

        def stop(self):
            pass

    described = {"gpu": "none"}
    monkeypatch.setattr(machine_cuda, "describe", lambda threads: described | {"threads": threads})
    monkeypatch.setattr(train_step, "Worker", Worker)
    return asked


def test_what_was_measured_is_there_after_each_group(asked, tmp_path, monkeypatch):
    """Cut off in the third group, and again with no time left; the same command ends it."""
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
    before = len(asked)
    monkeypatch.setattr(train_step, "sources_digest", lambda: "other code")
    assert train_step.main([*command, "--batch", "64"]) == 0 and len(asked) > before
