"""Clothing1M at full size without its images: a million generated keys and labels.

    python benchmarks/clothing1m_scale.py [--images N] [--shards N]
    mpiexec -n 8 python benchmarks/clothing1m_scale.py

Prints what each rank holds, how long start-up takes, what one step costs besides the network, and
how long the label update at an epoch's end and a checkpoint take.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo.datasets import clothing1m
from chainer_jo.datasets.clothing1m import CLASS_NAMES, KEY_LISTS, PUBLISHED_COUNTS
from chainer_jo.experiments.experiment import Network
from chainer_jo.experiments.presets import CLOTHING1M_PAPER, REAL, Study
from chainer_jo.experiments.provenance import cpu_name
from chainer_jo.experiments.task import Task
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.many_ranks import Ranks, connect

STEPS = 200
NAME = "generated"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=PUBLISHED_COUNTS[clothing1m.NOISY_TRAIN])
    parser.add_argument("--shards", type=int, help="default: one a rank")
    flags = parser.parse_args()
    ranks = connect(on_cuda=False)
    with tempfile.TemporaryDirectory() as folder:
        if ranks.is_first:
            print(f"{cpu_name()}, {ranks.size} ranks, {flags.images} training images", flush=True)
            write_lists(Path(folder), flags.images)
        measure(Path(folder), flags.shards or ranks.size, ranks)


def write_lists(root: Path, images: int) -> None:
    """Key lists and labels as long as the published ones, and keys as long."""
    rng = np.random.default_rng(0)
    counts = PUBLISHED_COUNTS | {clothing1m.NOISY_TRAIN: images}
    lines: dict[str, list[str]] = {name: [] for name in set(KEY_LISTS.values())}
    first = 0
    for name, count in counts.items():
        numbers = range(first, first + count)
        keys = [f"images/{i % 10}/{i % 97:02}/{i:010},{i * 7919 % 10**9:09}.jpg" for i in numbers]
        labels = rng.integers(len(CLASS_NAMES), size=count)
        lines[KEY_LISTS[name]] += [f"{key} {k}\n" for key, k in zip(keys, labels, strict=True)]
        (root / name).write_text("\n".join(keys) + "\n")
        first += count
    for name, pairs in lines.items():
        (root / name).write_text("".join(pairs))
    (root / clothing1m.CATEGORY_FILE).write_text("\n".join(CLASS_NAMES) + "\n")


def measure(root: Path, shards: int, ranks: Ranks) -> None:
    show = Report(ranks)
    before = show.memory("before anything is loaded")
    data = show.time(
        "parse and check the lists", lambda: clothing1m.load(root, NAME) if ranks.is_first else None
    )
    # The paper's first step; its network does not matter here.
    network = Network(weights="none")
    experiment = Study(replace(CLOTHING1M_PAPER, network=network), NAME).first_step(*REAL, 0)
    task = show.time(
        "divide keys and labels among ranks",
        lambda: Task(experiment, data, shards=shards, ranks=ranks),
    )
    train = task.train
    arrays = train.images.keys, train.labels, train.true_labels
    texts = sum(map(len, train.images.keys))  # beside the array
    show.size("keys and labels of training images", texts + sum(array.nbytes for array in arrays))
    optimization = experiment.optimization
    labels = LabelStore(task.train.labels, task.num_classes, "soft", average=None)
    show.size("labels, probabilities, running mean", 3 * labels.labels.nbytes)
    iterator = show.time(
        "draw an epoch's order",
        lambda: BatchIterator(
            task.shards.images, optimization.batch_size, 0, 1, 0, False, shards=task.shards
        ),
    )
    show.memory("all that", since=before)
    of_rank = optimization.batch_size // ranks.size
    probabilities = np.full((of_rank, task.num_classes), 1 / task.num_classes, "f")

    def steps() -> None:
        for _ in range(STEPS):
            indices = next(iterator).indices
            labels.labels[indices].sum()
            labels.write(indices, probabilities)

    show.time(f"labels of a step, mean of {STEPS}", steps, times=STEPS)
    show.time("label update at the end of an epoch", lambda: (labels.end_epoch(), labels.update()))
    show.time(
        "gather all labels for a checkpoint",
        lambda: (parts := ranks.gather(labels.labels)) and task.shards.join(parts),
    )


class Report:
    """Prints lines on the first rank: the slowest or largest of all ranks."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def _line(self, what: str, value: float, unit: str) -> None:
        values = self.ranks.gather(value)
        if values:
            print(f"{what:40} {max(values):10.3f} {unit}", flush=True)

    def time(self, what: str, work: Callable[[], Any], times: int = 1) -> Any:
        self.ranks.broadcast(None)  # all begin together
        start, busy = time.perf_counter(), time.process_time()
        result = work()
        self._line(what, 1000 * (time.perf_counter() - start) / times, "ms")
        self._line("  of which computing", 1000 * (time.process_time() - busy) / times, "ms")
        return result

    def size(self, what: str, size: int) -> None:
        self._line(what, size / 1e6, "MB a rank")

    def memory(self, what: str, since: float = 0.0) -> float:
        """Resident memory now, in MB, less `since`; the peak besides."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident = pages * resource.getpagesize() / 1e6
        self._line(f"resident memory, {what}", resident - since, "MB a rank")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        self._line("peak so far", peak, "MB a rank")
        return resident


if __name__ == "__main__":
    main()
