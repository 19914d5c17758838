"""One training iteration in PyTorch on a GPU, augmentation on the device included."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import torch
import torch.nn.functional as F
from torch_network import Network
from workload import (
    EPOCH,
    LEARNING_RATE,
    MOMENTUM,
    SEED,
    WEIGHT_DECAY,
    Missing,
    Workload,
    tiled,
)

PAD = 4
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: As much as this project scales the loss by in half precision: fixed, without a GradScaler, whose
#: search for infinities would be more kernels and a value to wait for.
LOSS_SCALE = 1024.0
WARM_UP = 11


class Images:
    """uint8 images on the device, given out cropped, mirrored and mean-subtracted."""

    def __init__(self, workload: Workload) -> None:
        def padded(array, dtype):
            tensor = torch.from_numpy(array).to("cuda", dtype)
            return F.pad(tensor, (0, 0, PAD, PAD, PAD, PAD))

        self.pixels = padded(workload.images, torch.uint8)
        self.mean = padded(workload.mean, torch.float32)
        self.size = workload.images.shape[1:3]

    def __call__(self, indices, dy, dx, flips):
        """float32 (b, c, h, w), channels last, for indices, crops and flips (b,)."""
        h, w = (torch.arange(s, device="cuda") for s in self.size)
        columns = torch.where(flips[:, None], len(w) - 1 - w, w) + dx[:, None]
        rows, columns = (dy[:, None] + h)[:, :, None], columns[:, None, :]
        pixels = self.pixels[indices[:, None, None], rows, columns]
        return (pixels * (1 / 255) - self.mean[rows, columns]).permute(0, 3, 1, 2)


def training_step(workload: Workload, precision: str, mode: str) -> Callable[[], None]:
    """One iteration, channels last.

    Parameters
    ----------
    precision : "fp32", "tf32", "bf16" or "fp16", the last two by autocast.
    mode : "" is eager, "compiled" the network by max-autotune, "graph" a CUDA graph of the whole
        step, "compiled-graph" a CUDA graph of a step whose augmentation, network, loss and
        optimizer are compiled.

    Raises Missing if the network cannot be compiled or captured here.
    """
    workload = tiled(workload, EPOCH)
    torch.manual_seed(SEED)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    network = Network(workload).to("cuda", memory_format=torch.channels_last)
    images = Images(workload)
    labels = torch.from_numpy(workload.labels).long().to("cuda")
    whole = mode == "compiled-graph"
    # What is one kernel as it comes has to be many for a compiler to fuse.
    kind = {"foreach": True} if whole else {"fused": True}
    optimizer = torch.optim.SGD(
        network.parameters(), LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY, **kind
    )
    plan = _plan(len(workload.images), workload.batch_size)
    predict = torch.compile(network, mode="max-autotune") if mode == "compiled" else network
    scale = LOSS_SCALE if precision == "fp16" else 1.0

    def loss(indices, dy, dx, flips):
        half = AUTOCAST.get(precision)
        with torch.autocast("cuda", half, enabled=half is not None):
            logits = predict(images(indices, dy, dx, flips))
        return F.cross_entropy(logits.float(), labels[indices]) * scale

    def update() -> None:
        if scale != 1:
            torch._foreach_mul_([p.grad for p in network.parameters()], 1 / scale)
        optimizer.step()

    if whole:
        # The graph is captured below, around all of it.
        loss, update = (torch.compile(f, mode="max-autotune-no-cudagraphs") for f in (loss, update))

    def iteration(indices, dy, dx, flips) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(indices, dy, dx, flips).backward()
        update()

    try:
        if mode.endswith("graph"):
            return _captured(iteration, plan)
        iteration(*next(plan))
    except Exception as error:  # whatever the compiler, or the one it calls, raises
        raise Missing(f"torch, {mode}: {' '.join(str(error).split())[:200]}") from error
    return lambda: iteration(*next(plan))


def _captured(iteration: Callable, plan) -> Callable[[], None]:
    static = next(plan)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            iteration(*static)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        iteration(*static)

    def step() -> None:
        for held, given in zip(static, next(plan), strict=True):
            held.copy_(given)
        graph.replay()

    # A graph knows addresses alone. What lies there, weights, images and labels, this holds.
    step.captured = iteration
    return step


def _plan(size: int, batch_size: int):
    """Indices, crops and flips of batch after batch; an epoch's are sent at once."""
    rng = numpy.random.default_rng(SEED)
    while True:
        epoch = [
            torch.from_numpy(array).to("cuda")
            for array in (
                rng.permutation(size),
                rng.integers(2 * PAD + 1, size=size),
                rng.integers(2 * PAD + 1, size=size),
                rng.random(size) < 0.5,
            )
        ]
        for start in range(0, size - batch_size + 1, batch_size):
            yield [tensor[start : start + batch_size].clone() for tensor in epoch]
