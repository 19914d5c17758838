"""What is committed as reference, and that computing something leaves it alone."""

import subprocess
from pathlib import Path

import pytest

from chainer_jo.commands import options
from chainer_jo.experiments.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent


def git(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)


pytestmark = pytest.mark.skipif(git("rev-parse").returncode != 0, reason="not in a git checkout")


def test_what_scripts_compute_and_what_is_committed_share_no_place():
    computed = options.parse("test", ["--device", "cpu"])
    for folder in (computed.results, computed.figures):
        for preset in PRESETS:
            assert git("check-ignore", f"{folder}/{preset}/table1.md").returncode == 0
    committed = git("ls-files", "results", "figures").stdout.splitlines()
    assert any(path.startswith("results/reference/digits/") for path in committed)
    assert all(path.split("/")[1] in ("reference", "README.md") for path in committed)
