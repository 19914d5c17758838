"""GPU smoke test: one real epoch in every precision, and a part of an epoch twice.

    python benchmarks/gpu_smoke.py --data cifar10 [--json FILE] [--precision mixed]

The epoch is the first of Table 1's first step at r = 0.5: the paper's network on all of CIFAR-10,
one-hot noisy labels. Before, a tenth of the images is trained on by called and by replayed steps.
Both must agree to the last bit. On cifar10-jpeg, their mean loss must also agree with a CPU's
(benchmarks/results/gpu_smoke-cpu.json, made with --device cpu) within rounding.
Each precision has its own process, the requested precision first, and the JSON is rewritten after
each result. The same command resumes with the precisions that have not passed. The exit code is 1
after any failure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files  # noqa: E402
from chainer_jo.data import source  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402
from chainer_jo.runs.experiment import PRECISIONS  # noqa: E402
from chainer_jo.runs.presets import PAPER, Study  # noqa: E402
from chainer_jo.runs.provenance import device_name, sources_digest  # noqa: E402
from chainer_jo.runs.run import Run, Settings, device_of  # noqa: E402
from chainer_jo.runs.store import RunStore  # noqa: E402

REFERENCE = HERE / "results" / "gpu_smoke-cpu.json"
NOISE_RATE = 0.5
#: What each precision does, in this order.
WAYS = ("called", "replayed", "whole")
#: What of the log must agree, means over the epoch, and within which relative difference. On the
#: CPU float32 and bfloat16 differ by 0.15 %, 0.14 %, 0.6 % and 2.5 %.
TOLERANCE = {"loss": 0.02, "cross_entropy": 0.02, "entropy": 0.02, "prior": 0.1}
#: Images of each class that the part of an epoch has, to train on and to test on.
PART = 500, 100


def epoch(data: str, precision: str, device: str, graph: bool, part: bool) -> dict:
    """What an epoch on all images or a part reports, and the seconds of it and of what came
    before."""
    started = time.perf_counter()
    found = source.find(data)
    experiment = Study(PAPER, found.name, precision=precision).first_step(
        "symmetric", NOISE_RATE, 0
    )
    experiment = replace(experiment, optimization=replace(experiment.optimization, epochs=1))
    if part:
        train, test = PART
        images = replace(experiment.data, train_per_class=train, test_per_class=test)
        experiment = replace(experiment, data=images)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder))
        run = Run(experiment, found.load(), store, Settings(device, graph=graph))
        ready = time.perf_counter()
        result = run.finish()
        log = store.log(experiment)
    return {
        "data": found.name,
        "fingerprint": result["data"],
        "state": result["state"],
        "engine": result["provenance"]["engine"],
        "replays": run.updater.replays,
        "device": result["provenance"]["device"],
        "log": log[0] if log else None,
        "seconds_before": ready - started,
        "seconds": time.perf_counter() - ready,
    }


def verdict(result: dict, reference: dict | None) -> str:
    """What is wrong with an epoch, or "ok"; without a reference any finite loss will do."""
    if result["state"] != "finished":
        return result["state"]
    if result["engine"] == "stock":
        return "stock Chainer computed, not cuDNN"
    for name, tolerance in TOLERANCE.items() if reference else ():
        ours, theirs = result["log"][name], reference["log"][name]
        if not abs(ours - theirs) <= tolerance * abs(theirs):
            return f"{name} {ours:.5f}, on a CPU {theirs:.5f}"
    return "ok"


def graph_verdict(called: dict, replayed: dict) -> str:
    """What is wrong with CUDA graphs, or "ok"."""
    if not replayed["replays"]:
        return "no step was captured"
    logs = [{**result["log"], "elapsed_time": None} for result in (called, replayed)]
    return "ok" if logs[0] == logs[1] else "replayed steps differ from called ones"


def check(data: str, precision: str) -> Iterator[dict]:
    """A part of an epoch both ways, and a whole one, with verdicts; given after each of the three
    with all that is known by then."""
    reference = files.read_json(REFERENCE)["fp32"]
    results = machine()
    for name, graph in (("called", False), ("replayed", True)):
        results[name] = epoch(data, precision, "cuda", graph, part=True)
        same = results[name]["fingerprint"] == reference["fingerprint"]
        results[name]["verdict"] = verdict(results[name], reference if same else None)
        if all(results.get(name, {}).get("verdict") == "ok" for name in ("called", "replayed")):
            results["graph"] = graph_verdict(results["called"], results["replayed"])
        yield results
    results["whole"] = epoch(data, precision, "cuda", results.get("graph") == "ok", part=False)
    results["whole"]["verdict"] = verdict(results["whole"], None)
    yield results


def passed(result: dict) -> bool:
    """Whether a precision may be used. Where time ran out before its whole epoch, the part of one
    will do; not where that broke down. What broke down replaying may still be called, and what
    broke down when all was computed be used."""
    verdicts = [result[way]["verdict"] for way in ("called", "whole") if way in result]
    broke_down_later = "error" in result and "replayed" in result and "whole" not in result
    return bool(verdicts) and set(verdicts) == {"ok"} and not broke_down_later


def machine() -> dict:
    """Key of a verdict: digest of the code, and the GPU."""
    return {"code": sources_digest(), "gpu": device_name(device_of("cuda"))}


def seen(path: Path) -> dict:
    """Verdicts of earlier calls with this code on this kind of GPU."""
    here = machine()
    return {p: found for p, found in files.read_json(path).items() if here.items() <= found.items()}


def complete(result: dict) -> bool:
    """Whether nothing of a precision is left to be seen, and all of it was right."""
    return all(way in result for way in WAYS) and not problems({"": result})


def flags(results: dict, wanted: str) -> str:
    """Flags for scripts: the precision wanted if it passed, or else the fastest one that did;
    without graphs where only called steps are right.

    Raises UserError if there is none.
    """
    for no_graph in (False, True):
        for precision in in_order(wanted):
            result = results.get(precision, {})
            if passed(result) and (no_graph or result.get("graph") == "ok"):
                return f"--precision {precision}" + " --no-graph" * no_graph
    raise UserError("no precision has passed")


def in_order(wanted: str) -> list[str]:
    """The precision wanted, then the others, the fastest first."""
    return sorted(reversed(PRECISIONS), key=lambda precision: precision != wanted)


def in_a_process(data: str, precision: str) -> Iterator[dict]:
    """`check` where a crash, or a device in an error state, harms nothing else."""
    command = [sys.executable, __file__, "--data", data, "--only", precision]
    result = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout:
                try:
                    result = json.loads(line)
                except json.JSONDecodeError:
                    continue  # a library's chatter
                yield result
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        yield {**result, "error": f"the process ended with {process.returncode}"}


def problems(results: dict) -> list[str]:
    """One line for each thing that is not as it should be."""
    found = []
    for precision, result in results.items():
        if "error" in result:
            found.append(f"{precision}: {result['error']}")
        for way in WAYS:
            if way in result and result[way]["verdict"] != "ok":
                found.append(f"{precision}, {way}: {result[way]['verdict']}")
        if result.get("graph", "ok") != "ok":
            found.append(f"{precision}: {result['graph']}")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--data", default="cifar10", help="as in reproduce/table1.py")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--only", choices=PRECISIONS, help="this precision alone, in this process")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--flags", type=Path, metavar="FILE", help="say what scripts may be given")
    parser.add_argument("--precision", choices=PRECISIONS, default="mixed", help="comes first")
    options = parser.parse_args(arguments)
    results = {}
    try:
        if options.flags:
            print(flags(seen(options.flags), options.precision))
            return 0
        if options.device == "cpu":
            for precision in [options.only] if options.only else ("fp32", "mixed"):
                results[precision] = epoch(options.data, precision, "cpu", False, part=True)
                print(f"{precision}: {json.dumps(results[precision])}", flush=True)
                files.write_json(options.json or REFERENCE, results)
            return 0
        if options.only:
            for result in check(options.data, options.only):
                print(json.dumps(result), flush=True)
            return 0
        if options.json and options.json.exists():
            results = seen(options.json)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    for precision in in_order(options.precision):
        if complete(results.get(precision, {})):
            print(f"{precision}: passed before", flush=True)
            continue
        shown = 0
        for result in in_a_process(options.data, precision):
            results[precision] = result
            if options.json:
                files.write_json(options.json, results)
            for way in WAYS[shown : sum(way in result for way in WAYS)]:
                entry = result[way]
                print(
                    f"{precision}, {way}: {entry['verdict']}; {entry['seconds_before']:.1f} s "
                    f"before the epoch, {entry['seconds']:.1f} s with it; {entry['log']}",
                    flush=True,
                )
                shown += 1
    wrong = problems(results)
    print(*wrong or ["everything as it should be"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
