"""Processor time, memory and disk that each script takes from nothing, on the digits.

    python benchmarks/script_costs.py [--trials 1] [--jobs 2] [--scripts table1 ...] [--json FILE]

Every script begins with an empty results folder, though several share runs. Processor time is that
of all its processes: on an idle machine with as many cores as jobs it takes that time divided by
the jobs. Memory is the largest process's; there is one for each job, and one for the script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import machine  # noqa: E402

from chainer_jo import files  # noqa: E402

NUMBERS = {"table": (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13), "figure": (1, 2, 3, 4, 5, 6)}
SCRIPTS = [f"{kind}{number}" for kind, numbers in NUMBERS.items() for number in numbers]


def measure(script: str, flags: list[str]) -> dict:
    """One script from nothing.

    Raises subprocess.CalledProcessError if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE.parent / "reproduce" / f"{script}.py"), *flags,
                   "--device", "cpu", "--results", f"{folder}/results",
                   "--figures", f"{folder}/figures"]  # fmt: skip
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if code := os.waitstatus_to_exitcode(status):
            raise subprocess.CalledProcessError(code, command)
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        unit = 1 if sys.platform == "darwin" else 1024
        return {
            "script": script,
            "runs": len(list(Path(folder).glob("results/*/runs/*/result.json"))),
            "processor_s": round(usage.ru_utime + usage.ru_stime, 1),
            "wall_s": round(time.monotonic() - started, 1),
            "process_mb": round(usage.ru_maxrss * unit / 1e6),
            "disk_mb": round(sum(path.stat().st_size for path in paths) / 1e6, 1),
        }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="digits")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=SCRIPTS, metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    options = parser.parse_args(arguments)
    flags = [f"--{name}={getattr(options, name)}" for name in ("preset", "trials", "jobs")]
    result = {"flags": flags, "machine": machine.describe(1), "scripts": []}
    for script in options.scripts:
        try:
            result["scripts"].append(measure(script, flags))
        except subprocess.CalledProcessError as error:
            print(f"{script}: {error}", file=sys.stderr)
            return 1
        print(json.dumps(result["scripts"][-1]), flush=True)
        if options.json:
            files.write_json(options.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
