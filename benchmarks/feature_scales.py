"""Label accuracy of `chainer_jo.relabel` on tables, with one scale for all columns and without.

    python benchmarks/feature_scales.py --json FILE.json

The data: scikit-learn's four classification sets, as they are and with each column multiplied by a
number from 1 to 10,000, log-uniform, drawn for each seed. A share of the labels is wrong: each
with that probability, any other class. A Markdown table is written beside the JSON file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files, seeds  # noqa: E402  (before chainer)

# isort: split
import chainer  # noqa: E402
import machine  # noqa: E402
import numpy as np  # noqa: E402
from sklearn import datasets  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from chainer_jo.relabel.estimate import features as feature_vectors  # noqa: E402
from chainer_jo.relabel.estimate import training  # noqa: E402
from chainer_jo.relabel.estimate.features import FeatureSet  # noqa: E402
from chainer_jo.reproduction.running.provenance import provenance  # noqa: E402

SETS = "iris", "wine", "breast_cancer", "digits"
RATES = 0.1, 0.2, 0.4
LARGEST_FACTOR = 1e4
#: How many dimensions the scale of each has.
SCALINGS = {"one scale": 0, "standardised": 1}


def records(sets: list[str], seeds_: list[int]) -> Iterator[dict]:
    """One for each set, multiplied or not, noise rate and seed."""
    for name in sets:
        features, true = getattr(datasets, f"load_{name}")(return_X_y=True)
        n, c = len(true), int(true.max()) + 1
        for multiplied in (False, True):
            for rate in RATES:
                for seed in seeds_:
                    case = SETS.index(name), int(multiplied), round(100 * rate)
                    rng = seeds.generator(seed, "noise", *case)
                    wrong = rng.random(n) < rate
                    given = np.where(wrong, (true + rng.integers(1, c, n)) % c, true)
                    factors = LARGEST_FACTOR ** rng.random(features.shape[1])
                    shown = features * factors if multiplied else features
                    record = {"set": name, "multiplied": multiplied, "rate": rate, "seed": seed}
                    record["before"] = float((given == true).mean())
                    yield record | measure(shown, given, true, seed)


def measure(features: np.ndarray, given: np.ndarray, true: np.ndarray, seed: int) -> dict:
    """Label accuracy and doubt with each of `SCALINGS`, and which of them the labels choose."""
    found, classes = {}, range(int(true.max()) + 1)
    for name, dimensions in SCALINGS.items():
        # Whatever the labels say, the other one is taken to be worse.
        said = dimensions, 1 - dimensions
        with mock.patch.object(feature_vectors, "left_out_error", side_effect=said):
            data = FeatureSet(features, given)
        errors = training.estimate_errors(data, given, classes, training.Recipe(), seed)
        found[name] = {"right": float((errors.new == true).mean()), "doubt": bool(errors.doubt)}
    standardised = bool(FeatureSet(features, given).normalisation[1].ndim)
    return {**found, "chosen": list(SCALINGS)[standardised]}


def markdown(result: dict) -> str:
    """A row for each set and noise rate."""
    lines = [
        "Label accuracy in percent, the mean of all seeds. The number in brackets counts the "
        "seeds with fewer correct labels than before and no doubt.",
        f"{result['machine']['processor']}, scikit-learn {result['versions']['scikit-learn']}.",
        "",
        f"    {result['command']}",
        "",
        "| set | noise | before | one scale | standardised | chosen | standardised is chosen |",
        "|---" * 7 + "|",
    ]
    rows: dict[tuple, list[dict]] = {}
    for record in result["records"]:
        rows.setdefault(tuple(record[key] for key in ("set", "multiplied", "rate")), []).append(
            record
        )
    for (name, multiplied, rate), row in rows.items():
        cells = [f"{name}, columns multiplied" if multiplied else name, f"{rate}"]
        cells.append(f"{100 * np.mean([r['before'] for r in row]):.1f}")
        for scaling in (*SCALINGS, "chosen"):
            right = 100 * np.mean([_of(r, scaling)["right"] for r in row])
            cells.append(f"{right:.1f} ({_worse(row, scaling)})")
        cells.append(f"{sum(r['chosen'] == 'standardised' for r in row)} of {len(row)}")
        lines.append(f"| {' | '.join(cells)} |")
    every = result["records"]
    counts = (f"{name} {_worse(every, name)}" for name in (*SCALINGS, "chosen"))
    lines += ["", f"Fewer correct labels and no doubt, of {len(every)} runs: {', '.join(counts)}."]
    return "\n".join([*lines, ""])


def _of(record: dict, scaling: str) -> dict:
    return record[record["chosen"] if scaling == "chosen" else scaling]


def _worse(rows: list[dict], scaling: str) -> int:
    found = ((_of(record, scaling), record["before"]) for record in rows)
    return sum(of["right"] < before and not of["doubt"] for of, before in found)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options = parser.parse_args(arguments)
    words = ["--sets", *options.sets, "--seeds", *map(str, options.seeds)]
    result = {
        "command": f"python benchmarks/feature_scales.py {' '.join(words)}",
        "machine": machine.describe(1),
        "versions": {"scikit-learn": machine.version("scikit-learn")},
        "provenance": provenance(chainer.get_device("@numpy"), None),
        "records": [],
    }
    with threadpool_limits(1):
        for record in records(options.sets, options.seeds):
            result["records"].append(record)
            print(record, flush=True)
    text = markdown(result)
    print(text)
    if options.json:
        files.write_json(options.json, result)
        files.write_text(options.json.with_suffix(".md"), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
