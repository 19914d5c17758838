"""Processor seconds and memory of `chainer_jo.relabel` and of cleanlab on up to a million rows.

    python benchmarks/label_errors_scale.py --features FILE.npz --json FILE.json

The rows: CIFAR-10 by embeddings as in `label_tasks.py`; beyond their 50,000, a row plus half the
difference of two others, all three at random from one class. 40 % of the labels are redrawn.
Each measurement has a process of its own, on one thread. Records are added to the JSON file as they
come, and replace records of the same measurement; a Markdown table is written beside it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import label_errors
import machine
import numpy as np
from label_errors import CLEANLAB, Verdict
from label_errors_page import table
from label_tasks import CIFAR10, PER_CLASS
from sklearn.metrics import average_precision_score
from threadpoolctl import threadpool_limits

from chainer_jo import files, seeds
from chainer_jo.command_line import exit_codes
from chainer_jo.devices import device_of
from chainer_jo.method import noise
from chainer_jo.relabel import relabel
from chainer_jo.reproduction.running.provenance import provenance

RATE = 0.4
SEED = 401
MIB = 2**20


def by_relabel(features: np.ndarray, given: np.ndarray) -> Verdict:
    return label_errors.verdict_of(relabel(features, given))


def by_regression(features: np.ndarray, given: np.ndarray) -> Verdict:
    return label_errors.METHODS[f"{CLEANLAB}scaled regression"](features, given, 0)


METHODS = {"relabel": by_relabel, "scaled regression, cleanlab's filter": by_regression}


def rows(file: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Features float32 (number, d) and true labels int32 (number,)."""
    known = files.arrays(file)["features"]
    rng = seeds.generator(SEED, "order")
    features = np.empty((number, known.shape[1]), np.float32)
    true = np.empty(number, np.int32)
    for start in range(0, number, len(known)):
        part = slice(start, min(start + len(known), number))
        size = part.stop - part.start
        if start:
            true[part] = rng.integers(len(CIFAR10), size=size)
            a, b, c = PER_CLASS * true[part] + rng.integers(PER_CLASS, size=(3, size))
            features[part] = known[a] + (known[b].astype(np.float32) - known[c]) / 2
        else:
            chosen = rng.permutation(len(known))[:size]
            features[part], true[part] = known[chosen], chosen // PER_CLASS
    return features, true


def measure(file: str, number: int, method: str) -> dict:
    """Scores, seconds of the processor, and the largest memory of this process."""
    features, true = rows(file, number)
    given = noise.symmetric(true, RATE, len(CIFAR10), seeds.generator(SEED, "noise"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    clock, processor = time.perf_counter(), time.process_time()
    with threadpool_limits(1):
        verdict = METHODS[method](features, given)
    return {
        "processor_seconds": time.process_time() - processor,
        "seconds": time.perf_counter() - clock,
        "features_mib": features.nbytes / MIB,
        "mib_before": before,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "right_before": float((given == true).mean()),
        "right": float((verdict.new == true).mean()),
        "average_precision": float(
            average_precision_score(given != true, -verdict.probability_given)
        ),
    }


def markdown(result: dict) -> str:
    """A row for each measurement."""
    cells = [
        ["rows", "method", "processor (s)", "memory (MiB)", "/ features", "labels correct"],
        *(
            [
                f"{record['number']:,}",
                record["method"],
                f"{record['processor_seconds']:.1f}",
                f"{record['mib']:,.0f}",
                f"{record['mib'] / record['features_mib']:.1f}",
                f"{100 * record['right']:.1f}",
            ]
            for record in sorted(result["records"], key=lambda record: record["number"])
        ),
    ]
    before = 100 * np.mean([record["right_before"] for record in result["records"]])
    return "\n".join(
        [
            "Costs of finding wrong labels by features float32 of 128 dimensions, on one core: "
            "processor seconds, and the largest memory of the process with Python, its packages "
            "and the features, also as a multiple of the features. "
            f"{before:.1f} % of the labels are correct before.",
            f"{result['machine']['processor']}, cleanlab {result['versions']['cleanlab']}, "
            f"scikit-learn {result['versions']['scikit-learn']}. {result['note']}".rstrip(),
            "",
            f"    {result['command']}",
            "",
            "Up to 50,000 rows are embeddings of CIFAR-10. The others are made of them: a row plus "
            "half the difference of two others, all three at random from one class.",
            "",
            *table(cells),
            "",
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    add = parser.add_argument
    add("--features", required=True, metavar="FILE", help="embeddings of CIFAR-10")
    add("--numbers", nargs="+", type=int, default=[10_000, 100_000, 1_000_000], help="of rows")
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD")
    add("--note", default="", help="about the machine, for the table")
    add("--json", type=Path, metavar="FILE", help="write the result there")
    add("--here", action="store_true", help="measure the first of each in this process, print JSON")
    with exit_codes():
        flags = parser.parse_args(arguments)
        if flags.here:
            print(json.dumps(measure(flags.features, flags.numbers[0], flags.methods[0])))
            return
        result = {
            "command": f"python benchmarks/{Path(__file__).name} --features FILE.npz",
            "note": flags.note,
            "features": files.digest(flags.features),
            "machine": machine.describe(1),
            "versions": {name: machine.version(name) for name in ("cleanlab", "scikit-learn")},
            "records": [],
        }
        if flags.json:
            result["records"] = files.read_json(flags.json, missing=result)["records"]
        for number in flags.numbers:
            for method in flags.methods:
                words = ["--features", flags.features, "--numbers", str(number), "--here"]
                command = [sys.executable, __file__, *words, "--methods", method]
                child = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                key = {"number": number, "method": method}
                measured = json.loads(child.stdout.splitlines()[-1])
                made_by = provenance(device_of("cpu"), None)
                record = {**key, **measured, "provenance": made_by}
                print(record, flush=True)
                others = [r for r in result["records"] if any(r[k] != key[k] for k in key)]
                result["records"] = [*others, record]
                if flags.json:
                    files.write_json(flags.json, result)
                    files.write_text(flags.json.with_suffix(".md"), markdown(result))
        print(markdown(result))


if __name__ == "__main__":
    main()
