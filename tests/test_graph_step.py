"""When a step is run, captured, replayed and captured anew, without a GPU."""

import gc
import logging
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from chainer_jo.engine.cuda.graph_step import WARM_UP, GraphStep


class CUDARuntimeError(RuntimeError):
    pass


class FakeCuPy:
    """A device whose graphs replay what was called while they were captured.

    Work goes through `launch`, as kernels do: while a stream captures, it is recorded, not done.
    """

    def __init__(self):
        self.events = []
        self.capturing = None
        self.allocator = None
        pool = SimpleNamespace(
            malloc=None, total_bytes=int, free_all_blocks=lambda: self.events.append("free")
        )
        self.cuda = SimpleNamespace(
            Stream=self.stream, MemoryPool=lambda: pool, using_allocator=self.using_allocator,
            runtime=SimpleNamespace(CUDARuntimeError=CUDARuntimeError),
        )  # fmt: skip

    empty = staticmethod(np.empty)

    def stream(self, **_):
        fake = self

        class Stream:
            ptr = 1

            def __enter__(self):
                fake.events.append("enter")

            def __exit__(self, *_):
                fake.events.append("exit")

            def begin_capture(self):
                fake.events.append("begin")
                fake.capturing = []

            def end_capture(self):
                fake.events.append("end")
                recorded, fake.capturing = fake.capturing, None
                if recorded is None or "invalid" in recorded:
                    raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated")
                return SimpleNamespace(launch=lambda: [work() for work in recorded])

        return Stream()

    @contextmanager
    def using_allocator(self, allocator):
        self.allocator = allocator or "of the graph"
        yield
        self.allocator = None

    def launch(self, work):
        assert self.allocator is not None, "work outside of the graph's own memory"
        if self.capturing is None:
            work()
        else:
            self.capturing.append(work)


def summing_step(cupy, total, calls):
    def step(x):
        calls.append(x)

        def work():
            total[...] += x.sum()

        cupy.launch(work)

    return step


def test_replays_do_the_same_work_as_calls_on_the_same_arrays():
    cupy, total, calls = FakeCuPy(), np.zeros(()), []
    graph = GraphStep(summing_step(cupy, total, calls), cupy)
    batches = np.random.default_rng(0).random((12, 5))
    returned = [graph(batch)[0] for batch in batches]
    assert total == pytest.approx(batches.sum())
    assert len(calls) == WARM_UP + 1, "captured once, then replayed"
    assert cupy.events.count("begin") == cupy.events.count("end") == 1
    assert len({id(a) for a in (*calls, *returned)}) == 1
    assert np.array_equal(returned[-1], batches[-1])


def test_the_garbage_collector_waits_for_the_end_of_a_capture():
    collecting = []
    step = GraphStep(lambda x: collecting.append(gc.isenabled()), FakeCuPy())
    for _ in range(WARM_UP + 2):
        step(np.zeros(1))
    assert collecting == [True] * WARM_UP + [False] and gc.isenabled()


def test_another_shape_or_type_has_its_own_graph():
    """Its memory is given back with it, which CuPy's pools do not do by themselves."""
    cupy, total, calls = FakeCuPy(), np.zeros(()), []
    graph = GraphStep(summing_step(cupy, total, calls), cupy)
    kinds = [np.ones(5), np.ones(3), np.ones(3, np.float32)]
    for _ in range(2 * WARM_UP):
        for array in kinds:
            graph(array)
    assert cupy.events.count("begin") == 3
    assert len(calls) == 3 * (WARM_UP + 1)
    assert total == 2 * WARM_UP * (5 + 3 + 3)
    assert graph.replays == 3 * WARM_UP and "free" not in cupy.events
    del graph
    gc.collect()
    assert cupy.events[-1] == "free"


def test_a_forgotten_graph_is_captured_anew():
    cupy, total = FakeCuPy(), np.zeros(())
    factor = 1.0

    def step(x):
        now = factor
        cupy.launch(lambda: total.__iadd__(now * x.sum()))

    graph = GraphStep(step, cupy)
    for _ in range(WARM_UP + 2):
        graph(np.ones(1))
    factor = 10.0
    graph(np.ones(1))
    assert total == WARM_UP + 3, "a replay knows nothing of the new number"
    graph.forget()
    for _ in range(WARM_UP + 2):
        graph(np.ones(1))
    assert total == WARM_UP + 3 + 10 * (WARM_UP + 2)


@pytest.mark.parametrize("refusal", [
    # of a library that CuPy does not let be captured; of a copy to the host; CUDA's own
    NotImplementedError("calling cuBLAS is not supported\nmore"),
    RuntimeError("the current stream is capturing, so D2H transfers are disallowed"),
    CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted"),
])  # fmt: skip
def test_what_cannot_be_captured_runs_eagerly_after_one_notice(caplog, refusal):
    cupy, total = FakeCuPy(), np.zeros(())

    def step(x):
        if cupy.capturing is not None:
            cupy.capturing.append("invalid")
            raise refusal
        cupy.launch(lambda: total.__iadd__(x.sum()))

    graph = GraphStep(step, cupy)
    with caplog.at_level(logging.WARNING):
        for _ in range(WARM_UP + 5):
            graph(np.ones(2))
        graph.forget()
        for _ in range(WARM_UP + 5):
            graph(np.ones(2))
    assert total == 2 * 2 * (WARM_UP + 5)
    first_line = str(refusal).split("\n")[0]
    assert [r.message for r in caplog.records] == [f"{first_line}; running without CUDA graphs"]
    assert gc.isenabled()


def test_errors_of_the_step_come_out_and_end_the_capture():
    cupy = FakeCuPy()

    def step(x):
        if cupy.capturing is not None:
            raise ValueError("wrong")

    graph = GraphStep(step, cupy)
    for _ in range(WARM_UP):
        graph(np.ones(2))
    with pytest.raises(ValueError, match="wrong"):
        graph(np.ones(2))
    assert cupy.capturing is None and gc.isenabled()
    assert cupy.events[-1] == "exit"
