"""Seconds of runs, known from finished ones or from a few iterations, and on many machines."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

from chainer_jo.data.image_data import ImageData
from chainer_jo.engine.backend import use_backend
from chainer_jo.runs.experiment import Experiment, Noise
from chainer_jo.runs.local_pool import Processes
from chainer_jo.runs.provenance import devices
from chainer_jo.runs.run import Run, Settings
from chainer_jo.runs.scheduler import Queue
from chainer_jo.runs.store import RunStore

MEASURED = "measured here"
TRIED = "from a few iterations tried here, without evaluation"
GUESS = "a guess until the first run has finished"
UNKNOWN = "not known on this device until the first run has finished"
#: Iterations before the clock starts: kernels are chosen and compiled, a CUDA graph is captured.
WARM_UP = 4
#: Iterations are measured for SECONDS, but at least FEWEST and at most MOST of them.
SECONDS, FEWEST, MOST = 2.0, 2, 50


@dataclass(frozen=True)
class Cost:
    """Estimates of seconds per run.

    Attributes
    ----------
    seconds_per_epoch : not a number if nothing is known.
    basis : what the estimates rest on, in words.
    """

    seconds_per_epoch: float
    basis: str

    @classmethod
    def of(
        cls,
        store: RunStore,
        experiments: Sequence[Experiment],
        device: str | None,
        guess: float | None,
    ) -> Cost:
        """What the finished ones among ``experiments`` tell, which are of one network, data and
        precision: the median counts.

        Parameters
        ----------
        device : name of the processor or GPU; only runs on such a one count. None: all do.
        guess : seconds per epoch before there is one, if they are known.
        """
        measured = [
            result["seconds"] / e.optimization.epochs
            for e in experiments
            if (result := store.result(e)) and result["state"] == "finished"
            if device is None or devices(result) == {device}
        ]
        if measured:
            return cls(statistics.median(measured), MEASURED)
        return cls(guess or math.nan, GUESS if guess else UNKNOWN)

    def tried(self, seconds_per_epoch: float | None) -> Cost:
        """The same after a few iterations were tried here, if they were."""
        return self if seconds_per_epoch is None else Cost(seconds_per_epoch, TRIED)

    def seconds(self, experiment: Experiment) -> float:
        """Estimated seconds of one run, alone."""
        return experiment.optimization.epochs * self.seconds_per_epoch


def duration(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.4 h`` or ``5.1 days``; ``?`` for what is not a number."""
    if math.isnan(seconds):
        return "?"
    for unit, size in (("days", 86400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def probe(
    experiment: Experiment, image_shape: tuple[int, int, int], settings: Settings, threads: int
) -> float | None:
    """Seconds of one iteration of a run like this, in a process of its own; None if that died, or
    memory was spent: the run itself says so in one line.

    Parameters
    ----------
    image_shape : (height, width, channels) that the network sees.
    threads : for convolutions on a CPU.

    Raises
    ------
    UserError
        if the device or the engine cannot do it.
    """
    with Processes(1, threads) as processes:
        try:
            return processes.call(measure, experiment, image_shape, settings, threads).result()
        except (BrokenProcessPool, MemoryError):  # CuPy's, too
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
        use_backend(run.backend)
        if run.backend is not None and settings.device == "cpu":
            run.backend.set_threads(threads)
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


def makespan(left: Mapping[Experiment, int], places: int) -> int:
    """Epochs from the first start to the last end of runs to do, ``places`` at a time; ``left`` are
    the epochs of each."""
    queue, now = Queue(list(left)), 0
    running: list[tuple[int, str, Experiment]] = []  # a heap, by when they end
    while queue or running:
        while len(running) < places and (experiment := queue.next(places)):
            heappush(running, (now + left[experiment], experiment.id, experiment))
        now, _, experiment = heappop(running)
        queue.ended(experiment, "finished")
    return now


def longest_chain(left: Mapping[Experiment, int]) -> int:
    """Epochs that no number of machines can save: of a first step and its second, where both are to
    do, or of the longest other run."""
    chains = (sum(left.get(step, 0) for step in (e, e.first_step) if step) for e in left)
    return max(chains, default=0)
