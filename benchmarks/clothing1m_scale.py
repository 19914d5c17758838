"""Clothing1M at full size without its images: a million generated keys and labels.

    python benchmarks/clothing1m_scale.py [--images N]

Prints the memory of a run, start-up time, cost of a step without the network, and time of the label
update at the end of an epoch.
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

from chainer_jo.data import clothing1m
from chainer_jo.data.clothing1m import CLASS_NAMES, KEY_LISTS, PUBLISHED_COUNTS
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_PAPER
from chainer_jo.reproduction.experiments.experiment import Network
from chainer_jo.reproduction.experiments.presets import REAL, Study
from chainer_jo.reproduction.running.provenance import cpu_name

STEPS = 200
NAME = "generated"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=PUBLISHED_COUNTS[clothing1m.NOISY_TRAIN])
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"{cpu_name()}, {flags.images} training images", flush=True)
        write_lists(Path(folder), flags.images)
        measure(Path(folder))


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


def measure(root: Path) -> None:
    before = memory("before anything is loaded")
    data = timed("parse and check the lists", lambda: clothing1m.load(root, NAME))
    # The paper's first step; its network does not matter here.
    network = Network(weights="none")
    experiment = Study(replace(CLOTHING1M_PAPER, network=network), NAME).first_step(*REAL, 0)
    split = timed("split, labels and prior", lambda: experiment.split(data))
    train, size = split.train, experiment.optimization.batch_size
    arrays = train.images, train.labels, train.true_labels
    texts = sum(map(len, train.images))  # beside the array
    show("keys and labels of training images", (texts + sum(a.nbytes for a in arrays)) / 1e6, "MB")
    labels = SoftLabels(train.labels, split.num_classes, "soft", average=None)
    show("labels, probabilities, running mean", 3 * labels.soft_labels.nbytes / 1e6, "MB")
    iterator = timed(
        "draw an epoch's order", lambda: BatchIterator(len(train), size, 0, 1, 0, False)
    )
    memory("all that", since=before)
    probabilities = np.full((size, split.num_classes), 1 / split.num_classes, "f")

    def steps() -> None:
        for _ in range(STEPS):
            indices = next(iterator).indices
            labels.soft_labels[indices].sum()
            labels.write(indices, probabilities)

    timed(f"labels of a step, mean of {STEPS}", steps, times=STEPS)
    timed("label update at the end of an epoch", lambda: (labels.end_epoch(), labels.update()))


def show(what: str, value: float, unit: str) -> None:
    print(f"{what:40} {value:10.3f} {unit}", flush=True)


def timed(what: str, work: Callable[[], Any], times: int = 1) -> Any:
    start, busy = time.perf_counter(), time.process_time()
    result = work()
    show(what, 1000 * (time.perf_counter() - start) / times, "ms")
    show("  of which computing", 1000 * (time.process_time() - busy) / times, "ms")
    return result


def memory(what: str, since: float = 0.0) -> float:
    """Resident memory now, in MB, less `since`, and its peak."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    resident = pages * resource.getpagesize() / 1e6
    show(f"resident memory, {what}", resident - since, "MB")
    show("peak so far", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, "MB")
    return resident


if __name__ == "__main__":
    main()
