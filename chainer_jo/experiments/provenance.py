"""Where a number comes from: code, versions, device."""

import functools
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import chainer
import numpy as np

import chainer_jo


@functools.cache
def commit() -> str | None:
    """The commit of the source tree, with ``-dirty`` if its code was changed since; None outside
    git."""
    root = Path(chainer_jo.__file__).parent.parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", "chainer_jo", "reproduce"
        )
        return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


@functools.cache
def cpu_name() -> str:
    """The processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def device_name(device: chainer.backend.Device) -> str:
    """The name of the GPU, or of the processor."""
    if device.xp is np:
        return cpu_name()
    return device.xp.cuda.runtime.getDeviceProperties(device.device.id)["name"].decode()


def provenance(device: chainer.backend.Device, engine: str) -> dict:
    """Commit, versions, device and engine, as JSON values."""
    packages = ["chainer", "numpy"] + ([] if device.xp is np else ["cupy-cuda12x", "cupy-cuda13x"])
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "commit": commit(),
        "versions": versions,
        "device": device_name(device),
        "engine": engine,
    }
