"""benchmarks/train_step.py: what it computes of a GPU without one, and a run on the CPU."""

import json
import sys
from types import SimpleNamespace

import engines_cuda as engines
import machine_cuda
import pytest
import train_step
import workload
from processes import ROOT, run
from worker import WorkerEnded

from chainer_jo.reproduction.experiments import presets


def elapsed(first, last):
    return last.milliseconds - first.milliseconds


def test_the_time_of_a_step_is_the_devices():
    """Each takes 3 ms there, whatever Python takes to ask for it; what is taken before it is timed
    is not counted."""
    done, free = [], iter([1000, 400])
    event = lambda: SimpleNamespace(milliseconds=3.0 * len(done), synchronize=int)  # noqa: E731
    step = engines.DeviceStep(lambda: lambda: done.append(1), event, elapsed, lambda: next(free))
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
        elapsed,
        lambda: next(clock),
        count=3,
    )
    assert step.time()["seconds"] == pytest.approx(0.002)
    assert done[:4] == [(0, 0), (1, 1), (2, 2), (0, 0)]


def test_without_a_gpu_it_says_so_in_one_line():
    command = [sys.executable, ROOT / "benchmarks" / "train_step.py", "--device", "cuda"]
    environment = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    said = run(command, 2, env=environment).stderr
    assert said.count("\n") == 1 and "--device cuda: no CUDA GPU" in said


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


def test_the_network_is_the_papers():
    paper, network = presets.PAPER, presets.PAPER.network
    shapes = map(tuple, (network.units, network.widths, paper.image_shape))
    assert workload.NETWORKS["paper"] == (*shapes, paper.batch_size)


def test_a_run(tmp_path, capsys):
    """Stock Chainer against this project without and with the engine, on the digits network."""
    path = tmp_path / "results" / "cpu.json"
    names = ["chainer", "chainer_jo/stock", "chainer_jo/fp32", "torch/fp32-nhwc"]
    arguments = ["--network", "digits", "--batch", "4", "--threads", "1", "--rounds", "1"]
    assert train_step.main([*arguments, "--profile", "--only", *names, "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    measured = {entry["name"]: entry for entry in result["entries"]}
    assert set(measured) | set(result["missing"]) == set(names)
    for entry in measured.values():
        assert 0 < entry["fastest_s"] <= entry["median_s"] < 60 and entry["processor_s"] > 0
    text = capsys.readouterr().out
    assert all(name in text for name in names)
