"""Streams, graphs and memory of the stand-in: everything happens at once, on one device."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy

#: Where compiled kernels are kept.
KERNELS = Path(tempfile.gettempdir()) / f"jo-gpu-standin-{os.getuid()}"
KERNELS.mkdir(exist_ok=True)


class Recording(list):
    """(name, work) of each kernel that a stream captured."""

    def __init__(self):
        super().__init__()
        self.kept = []  # memory that the kernels know by its address alone


#: The recording of the stream that captures, if one does.
recording: Recording | None = None


def needs_no_capture(what):
    if recording is not None:
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")


class CUDARuntimeError(RuntimeError):
    """CUDA's own error."""


class Device:
    compute_capability = "90"
    id = 0

    def __init__(self, device=0):
        assert device == 0, device

    def __int__(self):
        return 0

    def __eq__(self, other):
        return isinstance(other, Device)

    def __hash__(self):
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def use(self):
        pass

    def synchronize(self):
        needs_no_capture("synchronous API calls")


class Graph:
    """What was recorded, to be done as often as one likes."""

    def __init__(self, recorded):
        self.kernels = [name for name, _ in recorded]
        self._recorded = recorded

    def launch(self, stream=None):
        for _, work in self._recorded:
            work()


class Stream:
    def __init__(self, *_args, **_kwargs):
        self.ptr = id(self)

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *_):
        _streams.pop()

    def begin_capture(self):
        global recording
        assert recording is None and _streams[-1] is self
        recording = Recording()

    def end_capture(self):
        global recording
        if recording is None:
            raise CUDARuntimeError("cudaErrorIllegalState")
        recorded, recording = recording, None
        graph = Graph(recorded)
        graphs.append(graph)
        return graph

    def is_capturing(self):
        return recording is not None

    def synchronize(self):
        needs_no_capture("synchronous API calls")


#: All that were captured.
graphs: list[Graph] = []
_streams = [Stream()]


def get_current_stream():
    return _streams[-1]


class Event:
    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        needs_no_capture("synchronous API calls")


def get_elapsed_time(first, last):
    return 1e3 * (last.time - first.time)


class MemoryPool:
    def malloc(self, size):
        return alloc(size)

    def free_all_blocks(self):
        """Nothing is kept."""

    def total_bytes(self):
        return 0


def alloc(size):
    memory = numpy.empty(size + 256, numpy.uint8)
    if recording is not None:
        recording.kept.append(memory)
    return SimpleNamespace(ptr=-(-memory.ctypes.data // 256) * 256, memory=memory)


@contextmanager
def using_allocator(_allocator=None):
    yield


def is_available():
    return True


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: 1,
    getDevice=lambda: 0,
    runtimeGetVersion=lambda: 13000,
    driverGetVersion=lambda: 13000,
    memGetInfo=lambda: (1 << 34, 1 << 34),
    getDeviceProperties=lambda _: {
        "name": b"stand-in", "major": 9, "minor": 0, "multiProcessorCount": 1,
        "totalGlobalMem": 1 << 34,
    },
)  # fmt: skip
