"""Times one training iteration of the paper's network with every engine, in turn, on one machine.

python benchmarks/train_step.py --device cpu --json benchmarks/results/train_step-cpu.json
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from worker import Worker  # noqa: E402
from workload import Missing  # noqa: E402

from chainer_jo.errors import UserError  # noqa: E402

#: Every engine gets at least so many turns, and no more once it has used its seconds.
FEWEST_TURNS = 3


def measure(engines: str, names: list[str], options: argparse.Namespace) -> tuple[list, dict]:
    """The entries {"name", "median_s", ...}, with "profile" if asked for, and who is missing, why.

    All engines are started first; then they take turns, so that what else the machine does meets
    them all.
    """
    workers, missing = [], {}
    for name in names:
        try:
            workers.append(Worker(engines, name, options.network, options.batch, options.threads))
        except Missing as reason:
            missing[name] = str(reason)
    turns = {worker.name: [] for worker in workers}
    peaks = {}
    for _ in range(options.rounds):
        for worker in workers:
            mine = turns[worker.name]
            if len(mine) >= FEWEST_TURNS and sum(mine) > options.seconds:
                continue
            answer = worker.ask("time")
            mine.append(answer["seconds"])
            peaks[worker.name] = answer["peak_bytes"]
    entries = []
    for worker in workers:
        seconds = turns[worker.name]
        entry = {
            "name": worker.name,
            "median_s": statistics.median(seconds),
            "fastest_s": min(seconds),
            "turns": len(seconds),
            "peak_mb": peaks[worker.name] / 1e6,
        }
        if options.profile and worker.name in ("chainer_jo/fp32", "chainer_jo/mixed"):
            entry["profile"] = worker.ask("profile")
        entries.append(entry)
        worker.stop()
    return entries, missing


def ratios(goals: list, entries: list[dict]) -> list[dict]:
    """How often the one is as fast as the fastest of the others, next to the goal."""
    seconds = {entry["name"]: entry["median_s"] for entry in entries}
    found = []
    for name, ours, others, goal in goals:
        measured = [seconds[other] for other in others if other in seconds]
        if ours in seconds and measured:
            found.append({"name": name, "ratio": min(measured) / seconds[ours], "goal": goal})
    return found


def report(result: dict) -> str:
    """The result as text."""
    lines = [f"{result['network']} network, batch {result['batch']}, {result['device']}:"]
    lines.append(f"  {json.dumps(result['machine'])}")
    lines.append(f"  {'engine':<28}{'median':>12}{'fastest':>12}{'peak memory':>14}")
    for entry in result["entries"]:
        lines.append(
            f"  {entry['name']:<28}{entry['median_s'] * 1e3:>9.2f} ms"
            f"{entry['fastest_s'] * 1e3:>9.2f} ms{entry['peak_mb']:>11.0f} MB"
        )
    lines += [f"  {name:<28}left out: {why}" for name, why in result["missing"].items()]
    for ratio in result["ratios"]:
        lines.append(f"  {ratio['name']}: {ratio['ratio']:.2f} times (goal {ratio['goal']:g})")
    for entry in result["entries"]:
        if "profile" in entry:
            lines += _profile_lines(entry, result["peaks"])
    return "\n".join(lines)


def _profile_lines(entry: dict, peaks: dict) -> list[str]:
    profile = entry["profile"]
    operations = profile["operations"]
    peak = peaks.get("bf16_gflop_per_s" if "mixed" in entry["name"] else "fp32_gflop_per_s")
    lines = [
        f"  {entry['name']} by operation; a matrix product reaches {peak:.0f} GFLOP/s, "
        f"a copy {peaks['copy_gb_per_s']:.0f} GB/s:"
    ]
    rest = profile["seconds"] - sum(o["seconds"] for o in operations.values())
    ordered = sorted(operations.items(), key=lambda item: -item[1]["seconds"])
    for name, o in [*ordered, ("Chainer, NumPy, the rest", {"seconds": rest})]:
        line = (
            f"    {name:<26}{o['seconds'] * 1e3:>9.2f} ms {o['seconds'] / profile['seconds']:>6.1%}"
        )
        if o.get("flop"):
            rate = o["flop"] / o["seconds"] / 1e9
            line += f"{rate:>8.0f} GFLOP/s, {rate / peak:.0%} of a matrix product's"
        elif o.get("bytes"):
            rate = o["bytes"] / o["seconds"] / 1e9
            line += f"{rate:>8.1f} GB/s, {rate / peaks['copy_gb_per_s']:.0%} of a copy's"
        lines.append(line)
    return lines


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--network", choices=("paper", "digits"), default="paper")
    parser.add_argument("--batch", type=int, default=0, help="default: the preset's own")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these engines alone")
    parser.add_argument("--rounds", type=int, default=11, help="turns per engine at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="per engine, about")
    parser.add_argument("--profile", action="store_true", help="time by operation as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    engines = f"engines_{options.device}"
    try:
        module = importlib.import_module(engines)
        names = options.only or list(module.ENTRIES)
        unknown = sorted(set(names) - set(module.ENTRIES))
        if unknown:
            raise UserError(f"--only {unknown[0]}: expected one of {', '.join(module.ENTRIES)}")
        machine = importlib.import_module(module.MACHINE)
        result = {
            "device": options.device,
            "network": options.network,
            "batch": options.batch or "the preset's",
            "machine": machine.describe(options.threads),
            "peaks": machine.peaks() if options.profile or hasattr(module, "annotate") else {},
        }
        result["entries"], result["missing"] = measure(engines, names, options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    result["ratios"] = ratios(module.GOALS, result["entries"])
    print(report(result))
    if hasattr(module, "annotate"):
        print("\n".join(module.annotate(result)))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
