"""Images per second of the input pipeline alone, and of the training step that it feeds.

    python benchmarks/clothing1m_pipeline.py [--workers N ...] [--full-size] [--device cuda]

The images are drawn: JPEGs of 256 x 256 pixels as `prepare` writes them, about as many bytes as a
photograph's; or with --full-size 600 x 800 pixels, as without `prepare`. The step is the first
step's of the paper, ResNet-50 with random weights.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from chainer_jo.data.image_stream import ImageStream
from chainer_jo.devices import usable_cores
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.method.images import StreamedImages
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.resnet50 import ResNet50
from chainer_jo.reproduction.running.provenance import device_name

CLASSES = 14
FILES = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cores = usable_cores()
    counts = sorted({1, 2, max(1, cores - 1), cores} & set(range(1, cores + 1)))
    parser.add_argument("--workers", type=int, nargs="+", default=counts)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20, help="0: the pipeline alone")
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    flags = parser.parse_args()
    import chainer  # only now that chainer_jo has supplied what it needs

    device = chainer.get_device("@numpy" if flags.device == "cpu" else "@cupy:0")
    device.use()
    with tempfile.TemporaryDirectory() as folder:
        paths = draw(Path(folder), (600, 800) if flags.full_size else (256, 256))
        size = np.mean([os.path.getsize(path) for path in paths]) / 1e3
        print(f"{device_name(device)}, {cores} cores, batches of {flags.batch_size}, {size:.0f} kB")
        for workers in flags.workers:
            rate = pipeline_rate(paths, workers, flags, device)
            print(f"pipeline alone, {workers:2} workers {rate:10.0f} images/s", flush=True)
        if flags.steps:
            workers = max(flags.workers)
            alone, fed = step_rates(paths, workers, flags, device)
            print(f"step alone                {alone:10.1f} images/s")
            print(f"step fed by {workers:2} workers    {fed:10.1f} images/s")


def draw(folder: Path, size: tuple[int, int]) -> list[str]:
    """Smooth colours with grain, which compress about as photographs do."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(FILES):
        coarse = Image.fromarray(rng.integers(256, size=(24, 24, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), np.float32)
        grain = rng.normal(0, 5, smooth.shape[:2])[..., np.newaxis]
        path = folder / f"{i}.jpg"
        Image.fromarray(np.uint8((smooth + grain).clip(0, 255))).save(path, quality=95)
        paths.append(str(path))
    return paths


def batches_of(paths: list[str], size: int) -> Iterator[list[str]]:
    endless = itertools.cycle(paths)
    while True:
        yield list(itertools.islice(endless, size))


def pipeline_rate(paths: list[str], workers: int, flags: argparse.Namespace, device) -> float:
    stream = ImageStream(flags.batch_size, workers=workers, on_cuda=device.xp is not np)
    batches = stream.batches(batches_of(paths, flags.batch_size))
    for _ in range(10):  # what was decoded while the workers started is not counted
        next(batches)
    start = time.perf_counter()
    for _ in range(flags.batches):
        next(batches)
    rate = flags.batches * flags.batch_size / (time.perf_counter() - start)
    stream.close()
    return rate


def step_rates(
    paths: list[str], workers: int, flags: argparse.Namespace, device
) -> tuple[float, float]:
    """Images per second of the step on one batch again and again, and on streamed batches."""
    use_backend(choose_backend(device, "fp32"))
    network = ResNet50(CLASSES, rng=np.random.RandomState(0))
    objective = JointObjective(np.full(CLASSES, 1 / CLASSES, np.float32), 2.4, 0.8)
    model = Classifier(network, objective)
    model.to_device(device)
    optimizer = FlatMomentumSGD(8e-4, 0.9, 1e-3).setup(model)
    variant = network.variant
    labels = device.xp.full((flags.batch_size, CLASSES), 1 / CLASSES, np.float32)
    stream = ImageStream(flags.batch_size, workers=workers, on_cuda=device.xp is not np)
    scaling = variant.mean, variant.std, variant.channels
    prepare = StreamedImages("", np.array(paths), stream, *scaling, device.send).prepared
    batches = stream.batches(batches_of(paths, flags.batch_size))

    def rate(pixels: Iterator) -> float:
        for _ in range(10):  # what was decoded before is used up
            optimizer.update(model, prepare(next(pixels)), labels)
        float(objective.terms["loss"])
        start = time.perf_counter()
        for _ in range(flags.steps):
            optimizer.update(model, prepare(next(pixels)), labels)
        float(objective.terms["loss"])  # waits for the device
        return flags.steps * flags.batch_size / (time.perf_counter() - start)

    same = next(batches).copy()
    rates = rate(itertools.repeat(same)), rate(batches)
    stream.close()
    return rates


if __name__ == "__main__":
    main()
