"""The engines that a GPU is timed with: stock Chainer on CuPy, this project's, PyTorch's.

Times are between two events on the device; memory is what the device has less of than before.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
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
    """

    def __init__(self, build: Callable, event: Callable, elapsed: Callable, free: Callable) -> None:
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
            steps += STEPS
        return {"seconds": milliseconds / steps / 1e3, "peak_bytes": self.peak_bytes}


def time_step(step: DeviceStep) -> dict:
    """Answer of a worker that is asked for the time."""
    return step.time()


def _with_cupy(workload: Workload, module: str, function: str, **options: Any) -> DeviceStep:
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
    return DeviceStep(build, event, cupy.cuda.get_elapsed_time, lambda: free()[0])


def _torch(workload: Workload, **options: Any) -> DeviceStep:
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

    return DeviceStep(build, event, lambda first, last: first.elapsed_time(last), free)


_chainer = partial(_with_cupy, module="stock_chainer", function="stock_step", device="@cupy:0")
_joint = partial(_with_cupy, module="joint_step", function="joint_step", device="cuda")

OURS, THEIRS = ("fp32", "tf32", "mixed"), ("fp32", "tf32", "bf16", "fp16")
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
}  # fmt: skip
_TORCH = tuple(name for name in ENTRIES if name.startswith("torch/"))
_TORCH_16 = tuple(name for name in _TORCH if "16" in name)
#: Measured together, and one after the other, so that a machine that is taken away leaves what
#: matters most: what the goals compare, then the rest of each kind, and last what takes minutes to
#: compile, one by one.
GROUPS = (
    ("chainer_jo/mixed-graph", "chainer_jo/tf32-graph", "torch/bf16-nhwc-graph",
     "torch/fp16-nhwc-graph", "torch/tf32-nhwc-graph", "chainer"),
    ("chainer_jo/mixed-graph", "torch/bf16-nhwc-compiled-graph", "torch/fp16-nhwc-compiled-graph"),
    ("chainer_jo/tf32-graph", "torch/tf32-nhwc-compiled-graph"),
    *((f"chainer_jo/{precision}-graph",) for precision in ("mixed", "tf32", "fp32")),
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
