"""The engines that a CPU is timed with: stock Chainer, this project's, PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

from workload import Missing, Workload

Step = Callable[[], None]


def _build(workload: Workload, module: str, function: str, **options) -> Step:
    """Imports late, so that a process loads nothing but its own engine."""
    try:
        return getattr(importlib.import_module(module), function)(workload, **options)
    except ModuleNotFoundError as error:
        raise Missing(f"{error.name} is not installed") from error


def _build_chainer(workload: Workload, **options) -> Step:
    import chainer_jo  # noqa: F401  (knows what Chainer needs on NumPy 2; before chainer)

    return _build(workload, **options)


_joint = partial(_build_chainer, module="joint_step", function="joint_step")
_torch = partial(_build, module="torch_network", function="training_step")

#: Module that describes the machine and measures its limits.
MACHINE = "machine"
ENTRIES: dict[str, Callable[[Workload], Step]] = {
    "chainer": partial(_build_chainer, module="stock_chainer", function="stock_step"),
    "chainer_jo/stock": partial(_joint, engine="stock"),
    "chainer_jo/fp32": partial(_joint, engine="onednn"),
    "chainer_jo/mixed": partial(_joint, engine="onednn", precision="mixed"),
    "torch/fp32-nchw": _torch,
    "torch/fp32-nhwc": partial(_torch, channels_last=True),
    "torch/fp32-nhwc-compiled": partial(_torch, channels_last=True, compiled=True),
    "torch/bf16-nhwc": partial(_torch, channels_last=True, bfloat16=True),
    "torch/bf16-nhwc-compiled": partial(_torch, channels_last=True, bfloat16=True, compiled=True),
}
#: What is compared, ours, the others of which the fastest counts, and the goal with AMX.
GOALS = [
    (
        "fp32 over PyTorch float32",
        "chainer_jo/fp32",
        ("torch/fp32-nchw", "torch/fp32-nhwc", "torch/fp32-nhwc-compiled"),
        1.3,
    ),
    (
        "mixed over PyTorch bfloat16",
        "chainer_jo/mixed",
        ("torch/bf16-nhwc", "torch/bf16-nhwc-compiled"),
        1.5,
    ),
    ("fp32 over stock Chainer", "chainer_jo/fp32", ("chainer",), 10.0),
    ("mixed over stock Chainer", "chainer_jo/mixed", ("chainer",), 30.0),
    ("without a backend over stock Chainer", "chainer_jo/stock", ("chainer",), 1.0),
]
