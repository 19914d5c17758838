"""Whether every CPU engine learns the same: one table of a preset by each, side by side.

    python benchmarks/same_learning.py --preset half --data cifar10 --noise-rates 0.5 --trials 3 \
        --folder same-learning --json benchmarks/results/same_learning-half.json

Runs reproduce/table1.py with stock Chainer, with the engine in float32 and in mixed precision, each
in a folder of its own below --folder, where finished runs are found again; other flags are passed
on. From the same seeds the engines' rounding soon leads to different weights, so accuracies can
agree only within the scatter over trials, by the rule that the paper's claims are judged by.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files  # noqa: E402
from chainer_jo.paper.trials import EQUAL, Trials  # noqa: E402
from chainer_jo.report.agreement import read_trials  # noqa: E402

#: The first is what the others are held against.
ENGINES = {
    "stock": ("--engine", "stock", "--precision", "fp32"),
    "fp32": ("--engine", "onednn", "--precision", "fp32"),
    "mixed": ("--engine", "onednn", "--precision", "mixed"),
}


def accuracies(table: dict) -> dict[tuple, Trials]:
    """The cells of a table's JSON that have runs, by method, score, accuracy and noise rate."""
    return {
        (*cell["row"].values(), *cell["column"].values()): read_trials(cell)
        for cell in table["cells"]
        if cell["trials"]
    }


def compare(tables: dict[str, dict]) -> list[dict]:
    """One row per cell that every engine has: each one's mean and scatter, in percent, and whether
    it agrees with the first engine's; None for fewer than two trials."""
    by_engine = {name: accuracies(table) for name, table in tables.items()}
    first, *others = by_engine
    rows = []
    for key, reference in by_engine[first].items():
        if not all(key in by_engine[name] for name in others):
            continue
        row = {"cell": list(key), "engines": {}}
        for name, cells in by_engine.items():
            estimate = cells[key]
            entry = {
                "trials": list(estimate.finished),
                "mean": estimate.mean,
                "scatter": estimate.scatter,
            }
            if name != first:
                difference = estimate - reference
                scatter = difference.scatter
                entry["difference"] = difference.mean
                entry["scatter_of_difference"] = scatter
                entry["agrees"] = None
                if len(difference.finished) > 1:  # without scatter they are the same in all
                    entry["agrees"] = abs(difference.mean) <= (scatter or EQUAL)
            row["engines"][name] = entry
        rows.append(row)
    return rows


def markdown(rows: list[dict]) -> str:
    """The rows as a Markdown table."""
    names = list(rows[0]["engines"]) if rows else list(ENGINES)
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        shown = []
        for entry in row["engines"].values():
            text = f"{entry['mean']:.1f}"
            text += "" if entry["scatter"] is None else f" ± {entry['scatter']:.1f}"
            if "agrees" in entry:
                verdict = {True: "agrees", False: "differs", None: "too few trials"}
                text += f" ({entry['difference']:+.1f}, {verdict[entry['agrees']]})"
            shown.append(text)
        method, score, accuracy, rate = row["cell"]
        lines.append(f"| {method}, {score}, {accuracy}, r = {rate} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="Other flags are reproduce/table1.py's."
    )
    parser.add_argument("--folder", type=Path, required=True, help="for results, one per engine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options, passed_on = parser.parse_known_args(arguments)
    script = HERE.parent / "reproduce" / "table1.py"
    tables, origins = {}, {}
    for name, flags in ENGINES.items():
        results = options.folder / name
        command = [sys.executable, str(script), *passed_on, *flags, "--device", "cpu"]
        code = subprocess.run(
            [*command, "--results", str(results), "--figures", str(results)]
        ).returncode
        if code:
            return code
        (path,) = results.glob("*/table1.json")
        tables[name] = files.read_json(path)
        origins[name] = files.read_json(path.parent / "provenance.json")
    rows = compare(tables)
    print("\n" + markdown(rows))
    if options.json:
        about = {key: tables["stock"][key] for key in ("preset", "data")}
        files.write_json(options.json, {**about, "rows": rows, "provenance": origins})
    return 0


if __name__ == "__main__":
    sys.exit(main())
