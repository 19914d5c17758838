"""Which of cuDNN's plans runs: the fastest that is deterministic, and from then on the same one."""

import json
import multiprocessing
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cudnn import HostArrays, Library, Offer
from processes import ROOT

from chainer_jo import files
from chainer_jo.engine.cuda import cudnn_choices, cudnn_planner
from chainer_jo.engine.cuda.cudnn import CuDNN
from chainer_jo.engine.cuda.cudnn_choices import NAME, Choices
from chainer_jo.engine.cuda.cudnn_planner import ROUNDS, RUNS, SECONDS, WORKSPACE
from chainer_jo.errors import UserError

HERE = "H100, cuDNN 9.28.0"
SLOW, FAST = Offer("eng1_k2=5", 30.0, off=0.25), Offer("eng1_k2=7", 20.0, off=0.5)
MIDDLE = Offer("eng4", 25.0, off=-0.5)
GRAPH = "fp32 convolution (2, 3, 6, 6) (4, 3, 3, 3) 1 1 False"
X, W = np.ones((2, 3, 6, 6), np.float32), np.ones((4, 3, 3, 3), np.float32)


def convolution(backend, x=X):
    return backend.conv2d(x, W, 1, 1, None)


def make(*offers, choices=None, folder=None, precision="fp32"):
    """A backend, and the library below it, whose graphs have these plans."""
    library = Library()
    library.offers = offers
    arrays = HostArrays(lambda: library.clock)
    kernels = SimpleNamespace(occupy=lambda x, passes: arrays.allocated.append(passes))
    choices = choices or Choices(HERE)
    backend = CuDNN(library, "handle", precision, arrays, kernels, choices)
    if folder is not None:
        backend.bind_plan_cache(folder)
    return backend, library


def runs(library):
    return [graph.runs for graph in library.graphs]


def chosen(library):
    """The plan of the only graph."""
    (graph,) = library.graphs
    return graph.selected.name


def choice(*offers, **options):
    """The plan that is chosen in the first convolution."""
    backend, library = make(*offers, **options)
    convolution(backend)
    return chosen(library)


def kept(folder):
    found = json.loads((folder / NAME).read_text())[HERE]
    return {graph: choice["plan"] for graph, choice in found.items()}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Building takes the time that the library says."""
    libraries = []
    made = Library.__init__

    def remembered(self, *arguments):
        made(self, *arguments)
        libraries.append(self)

    monkeypatch.setattr(Library, "__init__", remembered)
    monkeypatch.setattr(cudnn_planner.time, "perf_counter", lambda: libraries[-1].clock)


def test_the_fastest_is_chosen_by_timing_and_runs_from_the_first_call_on():
    backend, library = make(SLOW, FAST, MIDDLE)
    plain = convolution(make(Offer("eng0"))[0])
    for _ in range(2):
        assert np.array_equal(convolution(backend), plain * (1 + FAST.off))
    assert chosen(library) == FAST.name
    assert runs(library) == [3 * (1 + ROUNDS * RUNS) + 2]
    occupied = sum(isinstance(passes, int) for passes in backend._xp.allocated)
    assert occupied == 3 * ROUNDS, "before each timing, while its runs are queued"


@pytest.mark.parametrize("precision", ["fp32", "tf32", "mixed"])
def test_what_varies_from_call_to_call_is_neither_built_nor_run(precision):
    refused = Offer("eng0", 1.0, notes=("NONDETERMINISTIC",))
    backend, library = make(refused, SLOW, refused, FAST, precision=precision)
    convolution(backend, backend.as_activation(X))
    assert chosen(library) == FAST.name
    assert {offer for _, offer in library.built} == {SLOW, FAST}


UNBUILT, UNRUN = Offer("eng8", 1.0, builds=False), Offer("eng9", 1.0, runs=False)


@pytest.mark.parametrize(("offers", "name"), [
    # Of those as fast, cuDNN's first.
    ((SLOW, Offer("eng4", 30.0), Offer("eng5", 30.0)), SLOW.name),
    ((SLOW, Offer("eng4", 29.5), Offer("eng5", 29.5)), SLOW.name),
    # All that are built in time are timed.
    ([Offer(f"eng{i}", 20.0 if i == 43 else 30.0) for i in range(44)], "eng43"),
    # Much memory is not taken for speed.
    ((SLOW, Offer("eng9", 1.0, workspace=WORKSPACE + 1)), SLOW.name),
    ((Offer("eng9", workspace=WORKSPACE + 1),), "eng9"),
    # What cannot be built or run is passed over, also where building takes long.
    ((UNBUILT, UNRUN, SLOW, FAST), FAST.name),
    ((Offer("eng8", builds=False, seconds_to_build=2 * SECONDS), SLOW), SLOW.name),
])  # fmt: skip
def test_which_plan_is_chosen(offers, name):
    assert choice(*offers) == name


@pytest.mark.parametrize(("shares", "number"), [
    ((0, 0.7, 0.1, 0.1), 2), ((1.1, 0.1, 0.1), 1), ((0.9, 0.9, 0.9), 2),
    ((0, 0.45, 0.45, 0.45, 0.45), 3),
])  # fmt: skip
def test_building_takes_little_more_than_a_share_of_a_second(shares, number):
    """The first is built in any case; none is begun that would end too late if it took as long as
    the one before."""
    backend, library = make(
        *(Offer(f"eng{i}", seconds_to_build=s * SECONDS) for i, s in enumerate(shares))
    )
    convolution(backend)
    assert len(library.built) == number


def test_a_graph_whose_only_plan_fails_is_an_error():
    with pytest.raises(UserError, match="no engine"):
        convolution(make(UNBUILT)[0])
    with pytest.raises(RuntimeError, match="EXECUTION_FAILED"):
        convolution(make(UNRUN)[0])


def test_a_continued_run_has_the_same_plans_without_measuring(tmp_path, caplog):
    backend, _ = make(SLOW, FAST, folder=tmp_path)
    first = convolution(backend)
    entry = {"plan": FAST.name, "microseconds": {SLOW.name: 30.0, FAST.name: 20.0}}
    assert json.loads((tmp_path / NAME).read_text())[HERE][GRAPH] == entry
    # Today another one is faster, and cuDNN's order is another.
    again, library = make(Offer("eng9", 1.0), SLOW, FAST, folder=tmp_path)
    assert np.array_equal(convolution(again), first)
    assert runs(library) == [1] and len(library.built) == 1
    assert backend.choices == again.choices is not None
    assert not caplog.records


def test_the_only_plan_is_kept_too_and_each_precision_chooses_by_itself(tmp_path):
    choices = Choices(HERE)
    assert choice(SLOW, choices=choices, folder=tmp_path) == SLOW.name
    assert choice(MIDDLE, choices=choices, folder=tmp_path, precision="tf32") == MIDDLE.name
    assert kept(tmp_path) == {GRAPH: SLOW.name, GRAPH.replace("fp32", "tf32"): MIDDLE.name}
    assert choice(FAST, SLOW, folder=tmp_path) == SLOW.name


def test_on_another_gpu_it_says_so_once_and_chooses_anew(tmp_path, caplog):
    convolution(make(SLOW, FAST, folder=tmp_path)[0])
    there = "H200, cuDNN 9.28.0"
    for turn in range(2):
        caplog.clear()
        assert choice(MIDDLE, SLOW, choices=Choices(there), folder=tmp_path) == MIDDLE.name
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == (turn == 0)
        assert all(HERE in line and there in line and str(tmp_path) in line for line in lines)
    assert kept(tmp_path) == {GRAPH: FAST.name}, "what was chosen before is still there"


@pytest.mark.parametrize("offers", [
    (SLOW, MIDDLE), (SLOW, Offer(FAST.name, builds=False), MIDDLE),
    (SLOW, Offer(FAST.name, notes=("NONDETERMINISTIC",)), MIDDLE),
])  # fmt: skip
def test_a_plan_that_is_not_there_any_more_is_replaced(tmp_path, caplog, offers):
    convolution(make(SLOW, FAST, folder=tmp_path)[0])
    assert choice(*offers, folder=tmp_path) == MIDDLE.name
    assert kept(tmp_path) == {GRAPH: MIDDLE.name}
    (record,) = caplog.records
    assert FAST.name in record.getMessage() and GRAPH in record.getMessage()


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": {"b": {"plan": 3}}}'])
def test_a_damaged_file_is_one_line_and_is_mended(tmp_path, caplog, text):
    path = tmp_path / NAME
    path.parent.mkdir()
    path.write_text(text)
    assert choice(SLOW, FAST, folder=tmp_path) == FAST.name
    assert kept(tmp_path) == {GRAPH: FAST.name}
    (record,) = caplog.records
    assert record.getMessage() == f"{path}: damaged; plans are chosen again"


def test_nothing_is_timed_while_a_stream_captures(tmp_path):
    backend, library = make(Offer("eng0", notes=("NONDETERMINISTIC",)), SLOW, FAST, folder=tmp_path)
    backend._xp.capturing = True  # its events refuse to be made then
    convolution(backend)
    backend._xp.capturing = False
    convolution(backend)
    assert chosen(library) == SLOW.name and runs(library) == [2]
    assert kept(tmp_path) == {GRAPH: SLOW.name}


def test_what_another_process_keeps_meanwhile_counts(tmp_path):
    """It ran first, so its results have this rounding."""
    mine, library = make(SLOW, FAST, MIDDLE, folder=tmp_path)
    convolution(make(MIDDLE, folder=tmp_path)[0])
    convolution(mine)
    assert chosen(library) == MIDDLE.name and kept(tmp_path) == {GRAPH: MIDDLE.name}


def _record(folder, number, barrier):
    choices = Choices(HERE)
    choices.keep_in(folder)
    barrier.wait()
    agreed = [choices.record(f"graph {i}", f"plan of {number}") for i in range(10)]
    choices.record(f"of {number} alone", "eng1")
    (folder / f"{number}.json").write_text(json.dumps(agreed))


def test_processes_agree_and_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=_record, args=(tmp_path, i, barrier)) for i in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    agreed = {(tmp_path / f"{i}.json").read_text() for i in range(2)}
    assert len(agreed) == 1
    assert json.loads(agreed.pop()) == [kept(tmp_path)[f"graph {i}"] for i in range(10)]
    assert {f"of {i} alone" for i in range(2)} < set(kept(tmp_path))


def test_a_process_measures_once_wherever_it_keeps_what_it_chose(tmp_path):
    """Steps that are called and steps that are replayed are held against each other in one process,
    in folders of their own."""
    choices = Choices(HERE)
    convolution(make(SLOW, FAST, choices=choices)[0])
    for folder in (None, tmp_path / "a", tmp_path / "b"):
        backend, library = make(MIDDLE, SLOW, FAST, choices=choices, folder=folder)
        convolution(backend)
        assert runs(library) == [1]
        assert folder is None or kept(folder) == {GRAPH: FAST.name}
    assert cudnn_choices.of("some GPU") is cudnn_choices.of("some GPU")


def test_in_a_folder_with_other_plans_these_are_taken(tmp_path):
    convolution(make(SLOW, folder=tmp_path / "theirs")[0])
    backend, library = make(SLOW, FAST, folder=tmp_path / "ours")
    plain = convolution(backend) / (1 + FAST.off)
    digest = backend.choices
    backend.bind_plan_cache(tmp_path / "theirs")
    assert np.array_equal(convolution(backend), plain * (1 + SLOW.off))
    assert backend.choices != digest
    backend.bind_plan_cache(tmp_path / "ours")
    assert np.array_equal(convolution(backend), plain * (1 + FAST.off))
    assert backend.choices == digest
    backend.bind_plan_cache(tmp_path / "ours")
    convolution(backend)
    assert len(runs(library)) == 3, "planned anew only where the plan is another one"


def test_a_folder_that_cannot_be_written_to_is_the_users(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*plans.json: Not a directory"):
        make(SLOW, folder=tmp_path / "file")


def test_the_digest_of_a_run_is_of_the_plans_that_it_ran(tmp_path):
    backend, _ = make(SLOW, FAST, folder=tmp_path)
    assert backend.choices is None
    convolution(backend, X[:1])
    convolution(backend)
    more = backend.choices
    backend.bind_plan_cache(tmp_path)
    convolution(backend)
    digest = backend.choices
    assert digest not in (None, more), "of this run alone"


def test_a_shipped_plan_comes_before_cudnns_first_and_after_the_folders(tmp_path, caplog):
    """It is kept unless another is clearly faster, or it cannot be built."""
    shipped = Choices(HERE, {GRAPH: MIDDLE.name})
    as_fast = Offer("eng5", 24.5)
    assert choice(SLOW, as_fast, MIDDLE, choices=shipped, folder=tmp_path) == MIDDLE.name
    assert kept(tmp_path) == {GRAPH: MIDDLE.name}, "another version may ship other plans"
    for folder, offers, expected in (
        ("faster", (MIDDLE, FAST), FAST), ("lost", (SLOW, as_fast), as_fast),
    ):  # fmt: skip
        shipped = Choices(HERE, {GRAPH: MIDDLE.name})
        assert choice(*offers, choices=shipped, folder=tmp_path / folder) == expected.name
    convolution(make(SLOW, folder=tmp_path / "kept")[0])
    shipped = Choices(HERE, {GRAPH: MIDDLE.name})
    assert choice(SLOW, MIDDLE, choices=shipped, folder=tmp_path / "kept") == SLOW.name
    assert not caplog.records


@pytest.mark.parametrize("results", ["paper-mixed", "paper-cifar10-jpeg-mixed"])
def test_shipped_plans_are_those_of_the_committed_results(results):
    committed = ROOT / "results" / "reference" / results / NAME
    assert files.read_json(cudnn_choices.SHIPPED) == files.read_json(committed)
    plan = cudnn_choices.of("NVIDIA H200, cuDNN 9.19.0").shipped[
        "mixed convolution_grad_weight (128, 32, 32, 32) (32, 32, 3, 3) 1 1"
    ]
    assert plan.startswith("eng65_")
