"""Seconds that one epoch of the first step takes on all of CIFAR-10, evaluation included.

    python benchmarks/full_epoch.py --data cifar10 [--preset paper] [--precision mixed]
        [--epochs 3] [--threads N] [--json FILE]

The run is the preset's first at r = 0.7, in a folder that is thrown away. Beside the clock's
seconds stand the processor's, of all threads: on a busy machine, and with one thread, these are
what an idle one takes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import machine  # noqa: E402

from chainer_jo import files  # noqa: E402
from chainer_jo.data import source  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.reproduction.experiments.experiment import PRECISIONS  # noqa: E402
from chainer_jo.reproduction.experiments.presets import HALF, PAPER, Study  # noqa: E402
from chainer_jo.reproduction.running.run import Computation, Run  # noqa: E402
from chainer_jo.reproduction.running.store import RunStore  # noqa: E402

NOISE_RATE = 0.7
PRESETS = {preset.name: preset for preset in (PAPER, HALF)}


def measure(preset: str, data: str, precision: str, epochs: int, threads: int) -> dict:
    """Seconds of each epoch by the log's clock and the processor's, and where they were measured.

    Raises UserError as `Run` and `source.find` do.
    """
    found = source.find(data)
    study = Study(PRESETS[preset], found.name, precision=precision)
    first_step = study.first_step("symmetric", NOISE_RATE, 0)
    optimization = replace(first_step.optimization, epochs=epochs)
    experiment = replace(first_step, optimization=optimization)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder))
        run = Run(experiment, found.load(), store, Computation())
        worked = [time.process_time()]
        run.trainer.extend(
            lambda trainer: worked.append(time.process_time()),
            name="processor time",
            trigger=(1, "epoch"),
        )
        with threadpool_limits(threads):  # NumPy's and oneDNN's, as runs of the scripts have it
            result = run.finish()
        ends = [0.0, *(entry["elapsed_time"] for entry in store.log(experiment))]
    seconds = [end - start for start, end in pairwise(ends)]
    return {
        "preset": preset,
        "data": found.name,
        "precision": precision,
        "provenance": result["provenance"],
        "iterations_per_epoch": result["iterations"] / epochs,
        "seconds": seconds,
        "median_s": statistics.median(seconds),
        "processor_s": [end - start for start, end in pairwise(worked)],
        "machine": machine.describe(threads),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=PRESETS, default="paper")
    parser.add_argument("--data", default="cifar10", help="as in reproduce/table1.py")
    parser.add_argument("--precision", choices=PRECISIONS, default="mixed")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options = parser.parse_args(arguments)
    try:
        if options.epochs < 1:
            raise UserError(f"--epochs {options.epochs}: expected at least 1")
        result = measure(
            options.preset, options.data, options.precision, options.epochs, options.threads
        )
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(result, indent=1))
    if options.json:
        files.write_json(options.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
