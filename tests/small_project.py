"""The project with smaller sizes: the preset ``paper``, what the benchmark times, the part of an
epoch of the smoke test."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import turns
from processes import ROOT, run

SMALL = {
    "chainer_jo/runs/presets.py": """
        from dataclasses import replace
        PAPER = replace(
            DIGITS, name="paper", network=Network((1,), (4,)), train_images=180,
            train_per_class=20, test_per_class=5, time_scale=0.05, average=3, trials=(2, 1, 1),
        )
        PRESETS["paper"] = PAPER
    """,
    "benchmarks/workload.py": """
        NETWORKS["paper"] = ((1,), (4,), (8, 8, 1), 4)
        EPOCH = 400
    """,
}
#: 1,000 images: eight steps, of which five are replayed.
PART = "PART = 500, 100", "PART = 100, 5"


def project(target: Path) -> None:
    """Copies the tracked files there, and makes them smaller."""
    if shutil.which("git") is None:
        pytest.skip("needs git, to know which files are the project's")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    tracked = run(listed, None, cwd=ROOT).stdout
    if not tracked:
        pytest.skip("needs the repository, to know which files are the project's")
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("results/", "figures/")):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    for name, lines in SMALL.items():
        with open(target / name, "a") as file:
            file.write("\n" + "\n".join(line[8:] for line in lines.splitlines()))
    with open(target / "chainer_jo" / "runs" / "worker.py", "a") as file:
        file.write(Path(turns.__file__).read_text().partition('"""\n\n')[2] + "\n\ntake_turns()\n")
    smoke = target / "benchmarks" / "gpu_smoke.py"
    text = smoke.read_text()
    assert text.count(PART[0]) == 1
    smoke.write_text(text.replace(*PART))  # a script, run as it is read


def reference(project: Path) -> None:
    """What the smoke test compares with: the CPU's epoch, in the precision that every CPU has."""
    flags = "--device", "cpu", "--data", "digits", "--only", "fp32"
    run([sys.executable, "benchmarks/gpu_smoke.py", *flags], cwd=project)
