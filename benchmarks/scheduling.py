"""Cost of scheduling runs: the scheduler alone, and per run on local processes and on workers of a
Dask scheduler (extra `cluster`), which the benchmark starts."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from chainer_jo import files
from chainer_jo.data import digits
from chainer_jo.reproduction.experiments.experiment import Experiment, Network
from chainer_jo.reproduction.experiments.presets import DIGITS, Study
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.local_pool import LocalPool
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.scheduler import Pool, Scheduler
from chainer_jo.reproduction.running.store import RunStore

#: Runs of one epoch: their own computing is as little as can be.
SHORT = replace(DIGITS, network=Network((1,), (4,)), time_scale=1e-9)


class Instant:
    """A pool whose runs are over as they begin."""

    def __init__(self, places: int) -> None:
        self.places = places

    def __enter__(self) -> Instant:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def submit(self, experiment: Experiment) -> Future:
        future = Future()
        future.set_result(("finished", {}))
        return future


def seconds(pool: Pool, store: RunStore, runs: list[Experiment]) -> float:
    """From the first run's end to the last's, per run; so that no start counts."""
    ends = []
    scheduler = Scheduler(store, pool, lambda event: ends.append(time.perf_counter()))
    assert scheduler.work(runs)
    return (ends[-1] - ends[0]) / (len(runs) - 1)


def joint(preset, number: int) -> list[Experiment]:
    """First and second steps, so many together."""
    study = Study(preset, "digits")
    return [study.joint("symmetric", 0.5, seed) for seed in range(number // 2)]


def loop_rate(pending: int, places: int) -> float:
    """Runs a second that the loop hands out when nothing computes."""
    with tempfile.TemporaryDirectory() as folder:
        scheduler = Scheduler(RunStore(folder), Instant(places))
        started = time.process_time()
        scheduler.work(joint(DIGITS, pending))
        return pending / (time.process_time() - started)


def per_run(runs: int, workers: int, rounds: int) -> dict[str, float]:
    """Wall-clock seconds per run: medians over rounds in which both take turns."""
    from distributed import LocalCluster

    from chainer_jo.reproduction.running.cluster import Cluster

    study, taken = Study(SHORT, "digits"), {"local": [], "cluster": []}
    todo = [study.baseline("cross_entropy", "symmetric", 0.5, seed) for seed in range(runs)]
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with LocalCluster(n_workers=workers, **options) as dask:
        for _ in range(rounds):
            for name, found in taken.items():
                with tempfile.TemporaryDirectory() as folder:
                    store, rest = RunStore(folder), (digits.load, Settings())
                    if name == "local":
                        pool = LocalPool(store, *rest, workers, 1)
                    else:
                        pool = Cluster(dask.scheduler_address, store, *rest, 1)
                    found.append(seconds(pool, store, todo))
    return {name: statistics.median(found) for name, found in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--places", type=int, default=64)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file to write")
    flags = parser.parse_args()
    found = {
        "device": provenance.cpu_name(),
        "commit": provenance.COMMIT,
        "runs_per_second": loop_rate(flags.pending, flags.places),
        "seconds_per_run": per_run(flags.runs, flags.workers, flags.rounds),
        **{name: getattr(flags, name) for name in ("pending", "places", "runs", "workers")},
    }
    print(json.dumps(found, indent=1))
    if flags.output:
        files.write_json(flags.output, found)


if __name__ == "__main__":
    main()
