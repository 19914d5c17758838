"""Run by mpiexec or alone: one small run, its losses written step by step.

DATA is a folder in Clothing1M's layout, whose images stay on disk, or "digits", kept in memory.

python ranks_job.py DATA RESULTS [--shards N] [--die-at STEP [--die-rank R]] [--raise-at STEP]
"""

import argparse
import json
import os
import signal
from pathlib import Path

from tiny import STUDY

from chainer_jo.datasets import clothing1m, digits
from chainer_jo.experiments.experiment import (
    Data,
    Experiment,
    Network,
    Noise,
    Optimization,
    Relabelling,
)
from chainer_jo.experiments.run import Run, Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.training.many_ranks import connect

ON_DISK = Experiment(
    Data("clothing1m-like", resize=18, crop=16),
    Noise("real"),
    Network((1, 1), (4, 8)),
    Optimization(3, 0.02, (), 8, 0.9, 1e-3, pad=0, flip=False),
    "joint",
    seed=0,
    alpha=1.2,
    beta=0.8,
    relabelling=Relabelling(1, 3),
)
IN_MEMORY = STUDY.first_step("symmetric", 0.5, 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("results", type=Path)
    for flag in ("shards", "die-at", "die-rank", "raise-at"):
        parser.add_argument(f"--{flag}", type=int)
    flags = parser.parse_args()
    ranks = connect(on_cuda=False)
    store = RunStore(flags.results)
    experiment = IN_MEMORY if flags.data == "digits" else ON_DISK
    data = None
    if ranks.is_first and experiment is IN_MEMORY:
        data = digits.load()
    elif ranks.is_first:
        data = clothing1m.load(flags.data, experiment.data.name)
    settings = Settings(
        engine="stock", workers=0, shards=flags.shards, snapshot_seconds=0, snapshot_steps=5
    )
    run = Run(experiment, data, store, settings, ranks=ranks)

    def each_step(trainer) -> None:
        updater = trainer.updater
        # Summed over all parts and the epoch's steps so far; nothing at the end of an epoch.
        loss = updater._of_all_ranks(updater._sums).get("loss") if updater.steps_of_epoch else None
        if ranks.is_first:
            with (flags.results / "losses.jsonl").open("a") as file:
                weights = float(abs(updater.get_optimizer("main").parameters).sum())
                file.write(json.dumps([updater.iteration, loss, weights]) + "\n")
        if updater.iteration == flags.raise_at and ranks.rank == ranks.size - 1:
            raise RuntimeError("made to fail")
        if updater.iteration == flags.die_at and ranks.rank == (flags.die_rank or 0):
            os.kill(os.getpid(), signal.SIGKILL)

    # After the checkpoint, so that the steps since are lost.
    run.trainer.extend(each_step, name="each_step", trigger=(1, "iteration"), priority=-300)
    run.finish()


if __name__ == "__main__":
    main()
