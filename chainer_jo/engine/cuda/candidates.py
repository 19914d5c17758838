"""Own kernels as candidates: one more plan of an operation, beside the plans that cuDNN offers.

When an operation first runs on a GPU, each own kernel that can compute it is compared with cuDNN's
result, then timed in turn with cuDNN's plans. A kernel that fails, differs by more than `TOLERANCE`
or does not repeat its bits is rejected in one line; a kernel that is slower changes nothing.

To add a kernel, write a module with its source and a ``launch_for``, and list both in `OWN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy

from chainer_jo.engine.cuda import batch_norm_kernels, conv32_kernels

#: Launches a kernel on CuPy's current stream, without host synchronisation (a CUDA graph captures
#: it). Takes the operation's arrays by the names in `cudnn_plans` ("x", "W", "residual", "y"; "gy",
#: "gx"; "gW"), with logical shape (n, c, h, w), the activations' type and channels-last memory,
#: contiguous and aligned to 16 bytes. Writes every element of the results, with the same bits at
#: every call; reads and writes nothing else, except for arrays that it allocates itself.
Launch = Callable[[Mapping[str, Any]], None]


class Candidate(NamedTuple):
    """An own kernel."""

    #: Plan name in ``plans.json``. A kernel that rounds differently than before needs another name,
    #: since the digest of a run is computed from names.
    name: str
    #: ``launch_for(precision, operation, *arguments)`` returns the kernel's `Launch`, or None for
    #: what the kernel cannot compute. ``operation`` is the name of a function in `cudnn_plans` like
    #: "batch_norm_grad", and ``arguments`` are that function's.
    launch_for: Callable[..., Launch | None]


#: Minimum compute capability: tensor cores by ``mma.sync`` with ``cp.async``.
MIN_CAPABILITY = 80
#: Maximum relative norm of the difference from cuDNN's result, and of cuDNN's from float64.
TOLERANCE = {"fp32": 1e-4, "tf32": 3e-3, "mixed": 2e-2}
#: All own kernels. No GPU has timed them yet: ``plans.json`` of the first run on one decides. What
#: wins for every shape replaces cuDNN's path; what wins for none is removed.
OWN = (
    Candidate("jo_batch_norm", batch_norm_kernels.launch_for),
    Candidate("jo_conv32", conv32_kernels.launch_for),
)


def difference(ours: Iterable[Any], expected: Iterable[Any]) -> float:
    """Maximum over pairs of arrays of the difference's norm, relative to the expected array's; NaN
    if an array has one."""
    return float(numpy.max([_relative(a, b) for a, b in zip(ours, expected, strict=True)]))


def _relative(a: Any, b: Any) -> float:
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    off, norm = float(((a - b) ** 2).sum() ** 0.5), float((b**2).sum() ** 0.5)
    return off / norm if norm else off and math.inf
