"""A process that holds one engine and is asked for timings, so that engines take turns.

Its memory is its own, so its peak is that engine's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

#: As it was when this started: what the project sets for its own oneDNN is not for others.
ENVIRONMENT = dict(os.environ)
#: Seconds that a turn lasts at least.
TURN = 0.25


class WorkerEnded(Exception):
    """The process broke off."""


class Worker:
    """The other end: starts the process and asks it. Raises workload.Missing if the engine says so.

    Parameters
    ----------
    engines : module with the `ENTRIES`.
    """

    def __init__(self, engines: str, entry: str, network: str, batch: int, threads: int) -> None:
        from workload import Missing

        self.name = entry
        command = [sys.executable, __file__, engines, entry, network, str(batch)]
        environment = {
            **ENVIRONMENT,
            **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)),
        }
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        answer = self._read()
        if "missing" in answer:
            self.stop()
            raise Missing(answer["missing"])

    def ask(self, request: str) -> dict:
        """ "time": {"seconds": per step, "processor_seconds": those that its threads worked,
        "peak_bytes"}; "profile": see `profile_step`."""
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return self._read()

    def stop(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            raise WorkerEnded(f"the process ended with {self._process.wait()}")
        return json.loads(line)


def _time(step: Callable[[], None]) -> dict:
    steps, start, busy = 0, time.perf_counter(), time.process_time()
    while steps == 0 or time.perf_counter() - start < TURN:
        step()
        steps += 1
    seconds = (time.perf_counter() - start) / steps
    processor = (time.process_time() - busy) / steps
    return {"seconds": seconds, "processor_seconds": processor, "peak_bytes": _peak_memory()}


def _peak_memory() -> int:
    """Most bytes resident so far. getrusage has it as well, but with what the parent once had."""
    with open("/proc/self/status") as lines:
        kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines")
    parser.add_argument("entry")
    parser.add_argument("network")
    parser.add_argument("batch", type=int)
    options = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr  # a library's chatter is no answer

    import workload

    def answer(value: dict) -> None:
        print(json.dumps(value), file=answers, flush=True)

    try:
        data = workload.load(options.network, options.batch or None)
        engines = importlib.import_module(options.engines)
        step = engines.ENTRIES[options.entry](data)
    except workload.Missing as missing:
        answer({"missing": str(missing)})
        return
    step()
    time_step = getattr(engines, "time_step", _time)
    answer({"ready": True})
    for request in sys.stdin:
        if request.strip() == "profile":
            from profile_step import profile

            answer(profile(step))
        else:
            answer(time_step(step))


if __name__ == "__main__":
    main()
