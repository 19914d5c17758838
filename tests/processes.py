"""Processes that tests start; one that does not end as expected shows what it said."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
names_in_utf8 = pytest.mark.skipif(
    sys.getfilesystemencoding() != "utf-8", reason="needs a locale whose file names are UTF-8"
)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
#: Characters that are shown of the end of what a process said.
SHOWN = 6000


def environment(*folders: Path, **variables: object) -> dict[str, str]:
    """This process's, with other folders and the checkout to import from first, and without what
    git tells its hooks, by which it would take the checkout for any other repository."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(map(str, (*folders, ROOT, *filter(None, inherited))))
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**own, "PYTHONPATH": path} | {k: str(v) for k, v in variables.items()}


def start(command: Sequence[object], **options: Any) -> subprocess.Popen:
    """A process whose output is kept, with options of `subprocess.Popen`; ``env`` is
    `environment`'s by default. A command may begin with a script."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [str(word) for word in command]
    python = [sys.executable] if words[0].endswith(".py") else []
    options = {"env": environment(), **pipes, **options}
    return subprocess.Popen([*python, *words], text=True, **options)


def finish(
    process: subprocess.Popen, code: int | None = 0, timeout: float = 300
) -> subprocess.CompletedProcess:
    """Waits for the end of a process; gives what it said. Raises AssertionError unless it ends with
    this exit code (None: any) in so many seconds."""
    __tracebackhide__ = True
    try:
        said = process.communicate(timeout=timeout)
        wrong = code not in (None, process.returncode)
    except subprocess.TimeoutExpired:
        process.kill()
        said, wrong = process.communicate(), True
    if wrong:
        head = f"{shlex.join(process.args)}: ended with {process.returncode}, expected {code}"
        raise AssertionError("\n".join([head, *((text or "")[-SHOWN:] for text in said)]))
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def run(
    command: Sequence[object], code: int | None = 0, timeout: float = 300, **options: Any
) -> subprocess.CompletedProcess:
    """`start` and `finish`."""
    __tracebackhide__ = True
    return finish(start(command, **options), code, timeout)


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Returns once it is true. Raises AssertionError unless it is within so many seconds."""
    __tracebackhide__ = True
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"not so within {seconds} seconds"
        time.sleep(0.05)


def alive(group: int) -> list[str]:
    """The states of the processes in a group that have not ended. Zombies have: a container may
    have nobody who collects them."""
    psutil = pytest.importorskip("psutil", reason="extra test")
    states = []
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group:
                states.append(process.info["status"])
    return [state for state in states if state != psutil.STATUS_ZOMBIE]
