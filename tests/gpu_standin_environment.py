"""How a program is run on the stand-in for a GPU (tests/gpu_standin)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cuda_on_cpu import COMPILER

STANDIN = Path(__file__).resolve().parent / "gpu_standin"


def environment(folder: Path) -> dict[str, str]:
    """Variables for a process that is to find a GPU; `folder` gets an empty library as driver."""
    driver = folder / "libcuda.so.1"
    if not driver.exists():
        command = [COMPILER, "-shared", "-fPIC", "-x", "c++", "/dev/null", "-o", str(driver)]
        subprocess.run(command, check=True)
    return {**os.environ, "PYTHONPATH": str(STANDIN), "LD_LIBRARY_PATH": str(folder)}
