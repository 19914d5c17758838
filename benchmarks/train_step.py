"""Times one training iteration of a network with every engine, in turn, on one machine.

python benchmarks/train_step.py --device cpu --json benchmarks/results/train_step-cpu.json

On a GPU the engines are measured in groups, what matters most first. The JSON is written after each
group; the same command goes on with the groups that it lacks.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from worker import Worker, WorkerEnded  # noqa: E402
from workload import NETWORKS, Missing  # noqa: E402

from chainer_jo import files  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.reproduction.running.provenance import sources_digest  # noqa: E402

#: Every engine gets at least so many turns, and no more once it has used its seconds.
FEWEST_TURNS = 3


def measure(engines: str, names: list[str], options: argparse.Namespace) -> tuple[list, dict]:
    """The entries {"name", "median_s", ...}, with "profile" if asked for, and who is missing, why.

    All engines are started first; then they take turns, so that what else the machine does meets
    them all. One that breaks off is missing.
    """
    workers, missing = [], {}
    for name in names:
        try:
            workers.append(Worker(engines, name, options.network, options.batch, options.threads))
        except (Missing, WorkerEnded) as reason:
            missing[name] = str(reason)
    turns = {worker.name: [] for worker in workers}
    processor = {worker.name: [] for worker in workers}
    peaks = {}
    for _ in range(options.rounds):
        for worker in tuple(workers):
            mine = turns[worker.name]
            if len(mine) >= FEWEST_TURNS and sum(mine) > options.seconds:
                continue
            try:
                answer = worker.ask("time")
            except WorkerEnded as reason:
                missing[worker.name] = str(reason)
                workers.remove(worker)
                continue
            mine.append(answer["seconds"])
            if "processor_seconds" in answer:
                processor[worker.name].append(answer["processor_seconds"])
            peaks[worker.name] = answer["peak_bytes"]
    entries = []
    for worker in workers:
        entry = entry_of(worker.name, turns[worker.name], peaks[worker.name])
        if processor[worker.name]:
            entry["processor_s"] = statistics.median(processor[worker.name])
        if options.profile and worker.name in ("chainer_jo/fp32", "chainer_jo/mixed"):
            entry["profile"] = worker.ask("profile")
        entries.append(entry)
        worker.stop()
    return entries, missing


def entry_of(name: str, seconds: list[float], peak_bytes: float) -> dict:
    """Statistics of an engine's turns, in seconds per step."""
    return {
        "name": name,
        "median_s": statistics.median(seconds),
        "fastest_s": min(seconds),
        "turns": len(seconds),
        "turns_s": seconds,
        "peak_mb": peak_bytes / 1e6,
    }


def merged(entries: list[dict], new: list[dict]) -> list[dict]:
    """The entries of both groups; the turns of one that is in both count together."""
    by_name = {entry["name"]: entry for entry in entries}
    for entry in new:
        before = by_name.get(entry["name"])
        if before:
            peak = max(before["peak_mb"], entry["peak_mb"]) * 1e6
            entry = entry_of(entry["name"], before["turns_s"] + entry["turns_s"], peak)
        by_name[entry["name"]] = entry
    return list(by_name.values())


def ratios(goals: list, entries: list[dict]) -> list[dict]:
    """Speed of the one relative to the fastest of the others, which "over" names, next to the
    goal.

    "processor_ratio" is the same by the seconds that the processor worked, which other programs
    beside them disturb less.
    """
    found = []
    for name, ours, others, goal in goals:
        ratio = {}
        for key, measure in (("processor_ratio", "processor_s"), ("ratio", "median_s")):
            seconds = {entry["name"]: entry[measure] for entry in entries if measure in entry}
            measured = [other for other in others if other in seconds]
            if ours in seconds and measured:
                fastest = min(measured, key=seconds.get)
                ratio |= {"over": fastest, key: seconds[fastest] / seconds[ours]}
        if ratio:
            found.append({"name": name, **ratio, "goal": goal})
    return found


def report(result: dict) -> str:
    """The result as text."""
    lines = [f"{result['network']} network, batch {result['batch']}, {result['device']}:"]
    lines.append(f"  {json.dumps(result['machine'])}")
    before, after = result["load"]
    lines.append(f"  processes that ran or waited to: {before:.1f} before, {after:.1f} after")
    lines.append(
        f"  {'engine':<34}{'median':>12}{'fastest':>12}{'processor':>12}{'peak memory':>14}"
    )
    for entry in result["entries"]:
        processor = f"{entry['processor_s'] * 1e3:.2f} ms" if "processor_s" in entry else "-"
        lines.append(
            f"  {entry['name']:<34}{entry['median_s'] * 1e3:>9.2f} ms"
            f"{entry['fastest_s'] * 1e3:>9.2f} ms{processor:>12}{entry['peak_mb']:>11.0f} MB"
        )
    lines += [f"  {name:<34}left out: {why}" for name, why in result["missing"].items()]
    for ratio in result["ratios"]:
        times = f"{ratio['ratio']:.2f} times {ratio['over']} (goal {ratio['goal']:g})"
        line = f"  {ratio['name']}: {times}"
        if "processor_ratio" in ratio:
            line += f", {ratio['processor_ratio']:.2f} by the processor's time"
        lines.append(line)
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
    if profile.get("recorded_s"):
        recorded = profile["recorded_s"] * 1e3
        lines.append(f"    (called one by one; as recorded they take {recorded:.2f} ms together)")
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
    parser.add_argument("--network", choices=tuple(NETWORKS), default="paper")
    parser.add_argument("--batch", type=int, default=0, help="default: the preset's own")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these engines alone")
    parser.add_argument("--rounds", type=int, default=11, help="turns per engine at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="per engine, about")
    parser.add_argument("--profile", action="store_true", help="on a CPU, by operation as well")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="no group is begun after so many"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    return parser.parse_args(arguments)


def code() -> str:
    """Identity of the measurement: digests of the package's code and of the files beside this."""
    mine = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py"))))
    return f"{sources_digest()}-{mine.hexdigest()[:12]}"


def begun(path: Path | None, result: dict) -> dict:
    """The result with what an earlier call with the same options has measured of this code on this
    machine."""
    if path is None or not path.exists():
        return result
    found = files.read_json(path)
    keys = ("device", "network", "batch", "machine", "code")
    same = all(found.get(key) == result[key] for key in keys)
    # One that cannot be continued: of another machine, or measured all at once.
    return found if same and "groups" in found else result


def main(arguments: list[str] | None = None) -> int:
    started = time.monotonic()
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
            "code": code(),
            "entries": [],
            "missing": {},
        }
        grouped = hasattr(module, "GROUPS")
        if grouped:
            result = begun(options.json, result | {"groups": []})
        result.setdefault("load", [os.getloadavg()[0]] * 2)
        if "peaks" not in result:
            profiled = options.profile and options.device == "cpu"
            result["peaks"] = machine.peaks(options.threads) if profiled else {}
        groups = [[name for name in group if name in names] for group in module.GROUPS] if grouped \
            else [names]  # fmt: skip
        for group in groups:
            if not group or group in result.get("groups", ()):
                continue
            if time.monotonic() - started > 60 * options.minutes:
                print("time is up; the same command goes on with what is left")
                break
            entries, missing = measure(engines, group, options)
            result["entries"] = merged(result["entries"], entries)
            result["missing"] |= missing
            if grouped:
                result["groups"].append(group)
                print(f"measured: {', '.join(group)}", flush=True)
            result["ratios"] = ratios(module.GOALS, result["entries"])
            result["load"][1] = os.getloadavg()[0]
            if hasattr(module, "annotate"):
                module.annotate(result)
            if options.json:
                files.write_text(options.json, json.dumps(result, indent=1) + "\n")
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    if "ratios" in result:
        print(report(result))
        if hasattr(module, "annotate"):
            print(*module.annotate(result), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
