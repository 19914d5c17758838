"""What an iteration takes on a device on which nothing has been measured yet: a few are tried."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np

from chainer_jo.datasets import ImageData
from chainer_jo.experiments.experiment import Experiment, Noise
from chainer_jo.experiments.run import Run, Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.functions import providers

#: Iterations before the clock starts: kernels are chosen and compiled, a CUDA graph is captured.
WARM_UP = 4
#: So many seconds are measured, and at least and at most so many iterations.
SECONDS, FEWEST, MOST = 2.0, 2, 50


def probe(
    experiment: Experiment, image_shape: tuple[int, int, int], settings: Settings, threads: int
) -> float | None:
    """Seconds of one iteration of a run like this, in a process of its own; None if that died.

    Parameters
    ----------
    image_shape : (height, width, channels) that the network sees.
    threads : for convolutions on a CPU.

    Raises
    ------
    UserError
        if the device or the engine cannot do it.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        try:
            return processes.submit(measure, experiment, image_shape, settings, threads).result()
        except BrokenProcessPool:
            return None


def measure(
    experiment: Experiment, image_shape: tuple[int, int, int], settings: Settings, threads: int
) -> float:
    """The same in this process: steps of the real network on random images."""
    batch_size, shrink = experiment.optimization.batch_size, experiment.data.shrink or 1
    data = _random_images(batch_size * (WARM_UP + MOST), image_shape, shrink)
    trial = replace(
        experiment,
        data=replace(experiment.data, name=data.name, train_per_class=None, test_per_class=None),
        noise=Noise(),
        first_step=None,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Run(trial, data, RunStore(Path(folder)), replace(settings, deadline=None))
        providers.use(run.provider)
        if run.provider is not None and settings.device == "cpu":
            run.provider.set_threads(threads)
        for _ in range(WARM_UP):
            run.updater.update()
        _synchronize(run)
        started, count = time.perf_counter(), 0
        while count < FEWEST or (count < MOST and time.perf_counter() - started < SECONDS):
            run.updater.update()
            _synchronize(run)
            count += 1
        return (time.perf_counter() - started) / count


def _random_images(number: int, shape: tuple[int, int, int], shrink: int) -> ImageData:
    """Images of ten classes, of which nine tenths are trained on."""
    rng = np.random.default_rng(0)
    height, width, channels = shape
    sizes = 20 * (number // 18 + 1), 20
    train, test = (
        rng.integers(256, size=(size, height * shrink, width * shrink, channels), dtype=np.uint8)
        for size in sizes
    )
    labels = [np.arange(size, dtype=np.int32) % 10 for size in sizes]
    return ImageData("random", train, labels[0], test, labels[1], tuple("0123456789"))


def _synchronize(run: Run) -> None:
    if run.device.xp is not np:
        run.device.xp.cuda.get_current_stream().synchronize()
