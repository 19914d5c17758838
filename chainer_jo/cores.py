"""How many cores this process may use."""

import math
import os
from pathlib import Path

#: Where a container finds what it is granted.
CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """The cores that this process is bound to, or all cores where the system does not tell; no more
    than a container's share of the processor is worth."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return math.ceil(min(cores, _share(CGROUP)))


def _share(cgroup: Path) -> float:
    """The processor time that a container may take, in cores; infinity where there is no limit."""
    try:
        if (cgroup / "cpu.max").exists():  # version 2
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            names = "cpu.cfs_quota_us", "cpu.cfs_period_us"
            quota, period = ((cgroup / "cpu" / name).read_text() for name in names)
    except OSError:
        return math.inf
    unlimited = quota == "max" or int(quota) < 0
    return math.inf if unlimited else int(quota) / int(period)
