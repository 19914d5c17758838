"""The paper's network, its optimizer and one training iteration in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from workload import CLASSES, LEARNING_RATE, MOMENTUM, SEED, WEIGHT_DECAY, Missing, Workload

EPS = 2e-5


def _conv(in_channels: int, out_channels: int, ksize: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, ksize, stride, ksize // 2, bias=False)


class Unit(nn.Module):
    """BN-ReLU-conv-BN-ReLU-conv plus a shortcut."""

    def __init__(self, in_channels: int, out_channels: int, stride: int, project: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels, EPS)
        self.conv1 = _conv(in_channels, out_channels, 3, stride)
        self.bn2 = nn.BatchNorm2d(out_channels, EPS)
        self.conv2 = _conv(out_channels, out_channels, 3)
        self.shortcut = _conv(in_channels, out_channels, 1, stride) if project else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.bn1(x))
        shortcut = x if self.shortcut is None else self.shortcut(h)
        return self.conv2(F.relu(self.bn2(self.conv1(h)))) + shortcut


class Network(nn.Module):
    """Table 4's layers, logits out."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        channels = workload.widths[0]
        layers: list[nn.Module] = [_conv(workload.images.shape[-1], channels, 3)]
        for stage, (units, width) in enumerate(zip(workload.units, workload.widths, strict=True)):
            for unit in range(units):
                stride = 2 if stage and not unit else 1
                layers.append(Unit(channels, width, stride, project=not unit))
                channels = width
        self.layers = nn.Sequential(*layers, nn.BatchNorm2d(channels, EPS), nn.ReLU())
        self.dense = nn.Linear(channels, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.layers(x).mean((2, 3)))


def training_step(
    workload: Workload,
    channels_last: bool = False,
    bfloat16: bool = False,
    compiled: bool = False,
) -> Callable[[], None]:
    """One iteration: the next batch of the data, softmax cross entropy, SGD.

    Raises Missing if the network cannot be compiled here.
    """
    torch.manual_seed(SEED)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    network = Network(workload).to(memory_format=layout)
    images = torch.from_numpy(workload.inputs).to(memory_format=layout)
    labels = torch.from_numpy(workload.labels).long()
    optimizer = torch.optim.SGD(
        network.parameters(), LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY, fused=True
    )
    predict = torch.compile(network) if compiled else network
    batches = _slices(len(images), workload.batch_size)

    def step() -> None:
        batch = next(batches)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            logits = predict(images[batch])
        F.cross_entropy(logits.float(), labels[batch]).backward()
        optimizer.step()

    if compiled:
        try:
            step()
        except Exception as error:  # whatever the compiler, or the one it calls, raises
            raise Missing(f"torch.compile: {' '.join(str(error).split())[:200]}") from error
    return step


def _slices(size: int, batch_size: int):
    while True:
        for start in range(0, size, batch_size):
            yield slice(start, start + batch_size)
