"""The engines that a GPU is timed with: stock Chainer on CuPy, this project's, PyTorch's.

Times are between two events on the device, or between two moments at which it is idle where several
steps share it; memory is what the device has less of than before.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from itertools import product
from typing import Any

from workload import EPOCH, NETWORKS, Missing, Workload

#: Steps before any is timed: compilers, plans, captures.
WARM_UP = 12
#: Steps between two looks at the clock, and seconds that a turn lasts at least.
STEPS, TURN = 20, 0.25


class DeviceStep:
    """A training step that has been warmed up, with its device's clock.

    Parameters
    ----------
    build : makes the step.
    event : makes an event that records itself, with ``synchronize``.
    elapsed : milliseconds between two events.
    free : bytes that are free on the device.
    count : steps that a call of the step does.
    """

    def __init__(
        self,
        build: Callable,
        event: Callable,
        elapsed: Callable,
        free: Callable,
        count: int = 1,
    ) -> None:
        self._count = count
        before = free()
        self._step = build()
        for _ in range(WARM_UP):
            self._step()
        event().synchronize()
        self._event, self._elapsed = event, elapsed
        # Allocators keep what they took, and other engines start later.
        self.peak_bytes = before - free()

    def __call__(self) -> None:
        self._step()

    def time(self) -> dict:
        """Seconds per step on the device."""
        steps, milliseconds, start = 0, 0.0, time.perf_counter()
        while time.perf_counter() - start < TURN:
            first = self._event()
            for _ in range(STEPS):
                self._step()
            last = self._event()
            last.synchronize()
            milliseconds += self._elapsed(first, last)
            steps += STEPS * self._count
        return {"seconds": milliseconds / steps / 1e3, "peak_bytes": self.peak_bytes}


def time_step(step: DeviceStep) -> dict:
    """Answer of a worker that is asked for the time."""
    return step.time()


class IdleDevice:
    """A moment at which all streams of a device have done their work, in place of an event."""

    def __init__(self, synchronize: Callable[[], object]) -> None:
        synchronize()
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is left to wait for."""


def milliseconds(first: IdleDevice, last: IdleDevice) -> float:
    """Time between two moments."""
    return 1e3 * (last.seconds - first.seconds)


def together(build: Callable, streams: list[AbstractContextManager]) -> Callable[[], None]:
    """One step of each of several models in turn, each built and called on its own stream."""
    steps = []
    for stream in streams:
        with stream:
            steps.append((stream, build()))

    def step() -> None:
        for stream, each in steps:
            with stream:
                each()

    return step


def _with_cupy(
    workload: Workload, module: str, function: str, count: int = 1, **options: Any
) -> DeviceStep:
    import chainer_jo  # noqa: F401  (knows what Chainer needs on CuPy 14; before chainer)

    try:
        import cupy
    except ImportError as error:
        raise Missing(f"CuPy cannot be imported: {error}") from error

    def event():
        recorded = cupy.cuda.Event()
        recorded.record()
        return recorded

    try:
        free = cupy.cuda.runtime.memGetInfo
        free()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise Missing(f"no CUDA GPU: {error}") from error
    build = partial(getattr(importlib.import_module(module), function), workload, **options)
    if count == 1:
        return DeviceStep(build, event, cupy.cuda.get_elapsed_time, lambda: free()[0])
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
    idle = partial(IdleDevice, cupy.cuda.Device().synchronize)
    return DeviceStep(
        partial(together, build, streams), idle, milliseconds, lambda: free()[0], count
    )


def _torch(workload: Workload, count: int = 1, **options: Any) -> DeviceStep:
    try:
        import torch
    except ImportError as error:
        raise Missing("torch is not installed") from error
    if not torch.cuda.is_available():
        raise Missing("torch finds no CUDA GPU")
    from torch_cuda import training_step

    def event():
        recorded = torch.cuda.Event(enable_timing=True)
        recorded.record()
        return recorded

    build = partial(training_step, workload, **options)

    def free():
        return torch.cuda.mem_get_info()[0]

    if count == 1:
        return DeviceStep(build, event, lambda first, last: first.elapsed_time(last), free)
    streams = [torch.cuda.stream(torch.cuda.Stream()) for _ in range(count)]
    idle = partial(IdleDevice, torch.cuda.synchronize)
    return DeviceStep(partial(together, build, streams), idle, milliseconds, free, count)


_chainer = partial(_with_cupy, module="stock_chainer", function="stock_step", device="@cupy:0")
_joint = partial(_with_cupy, module="joint_step", function="joint_step", device="cuda")

OURS, THEIRS = ("fp32", "tf32", "mixed"), ("fp32", "tf32", "bf16", "fp16")
#: Numbers of models that share the GPU, each with a stream and a graph of its own.
SEVERAL = 2, 3, 4
#: Module that describes the machine.
MACHINE = "machine_cuda"
ENTRIES: dict[str, Callable[[Workload], DeviceStep]] = {
    "chainer": _chainer,
    "chainer_jo/stock": partial(_joint, engine="stock"),
    **{
        f"chainer_jo/{precision}-{'graph' if graph else 'eager'}":
        partial(_joint, engine="cudnn", precision=precision, graph=graph)
        for precision, graph in product(OURS, (False, True))
    },
    **{
        f"torch/{precision}-nhwc{mode}": partial(_torch, precision=precision, mode=mode[1:])
        for precision, mode in product(THEIRS, ("", "-graph", "-compiled", "-compiled-graph"))
    },
    **{
        f"chainer_jo/mixed-graph-x{count}":
        partial(_joint, engine="cudnn", precision="mixed", graph=True, count=count)
        for count in SEVERAL
    },
    **{
        f"torch/{precision}-nhwc{mode}-x{count}":
        partial(_torch, precision=precision, mode=mode[1:], count=count)
        for precision, mode, count in product(
            ("bf16", "fp16"), ("-graph", "-compiled-graph"), SEVERAL
        )
    },
}  # fmt: skip
_TORCH = tuple(name for name in ENTRIES if name.startswith("torch/"))
_TORCH_16 = tuple(name for name in _TORCH if "16" in name)
_SEVERAL = tuple(name for name in ENTRIES if name[:-1].endswith("-x") and "compiled" not in name)
#: Measured together, and one after the other, so that a machine that is taken away leaves what
#: matters most: what the goals compare, then the rest of each kind, and last what takes minutes to
#: compile, one by one.
GROUPS = (
    ("chainer_jo/mixed-graph", "chainer_jo/mixed-graph-x2", "chainer_jo/tf32-graph",
     "torch/bf16-nhwc-graph", "torch/fp16-nhwc-graph", "torch/bf16-nhwc-graph-x2",
     "torch/tf32-nhwc-graph", "chainer"),
    ("chainer_jo/mixed-graph", *_SEVERAL),
    ("chainer_jo/mixed-graph", "torch/bf16-nhwc-compiled-graph", "torch/fp16-nhwc-compiled-graph"),
    ("chainer_jo/tf32-graph", "torch/tf32-nhwc-compiled-graph"),
    *(tuple(name for name in ENTRIES
            if name.startswith(f"chainer_jo/{precision}-graph") and name not in _SEVERAL)
      for precision in ("mixed", "tf32", "fp32")),
    ("chainer_jo/mixed-graph", "torch/fp32-nhwc-graph"),
    tuple(name for name in ENTRIES if "eager" in name or name == "chainer_jo/stock"),
    tuple(name for name in _TORCH if name.endswith("nhwc")),
    *((name,) for name in _TORCH if "compiled" in name),
)  # fmt: skip
#: What is compared, ours, the others of which the fastest counts, and the goal.
GOALS = [
    (
        "mixed graph over PyTorch's best of 16 bits",
        "chainer_jo/mixed-graph",
        tuple(name for name in _TORCH_16 if "-x" not in name),
        1.5,
    ),
    (
        "two mixed graphs over PyTorch's best of 16 bits, one or several models",
        "chainer_jo/mixed-graph-x2",
        _TORCH_16,
        1.5,
    ),
    (
        "tf32 graph over PyTorch's best tf32",
        "chainer_jo/tf32-graph",
        tuple(name for name in _TORCH if "tf32" in name),
        1.25,
    ),
    ("mixed graph over Chainer as it comes", "chainer_jo/mixed-graph", ("chainer",), 15.0),
]


def annotate(result: dict) -> list[str]:
    """Adds to each entry what follows from its time, and returns that as lines of text."""
    *_, batch = NETWORKS[result["network"]]
    batch = result["batch"] if isinstance(result["batch"], int) else batch
    lines = [f"  {'engine':<32}{'images/s':>11}{'s/epoch':>9}"]
    for entry in result["entries"]:
        entry["images_per_s"] = batch / entry["median_s"]
        entry["seconds_per_epoch"] = EPOCH / entry["images_per_s"]
        lines.append(
            f"  {entry['name']:<32}{entry['images_per_s']:>11.0f}{entry['seconds_per_epoch']:>9.3f}"
        )
    return lines
