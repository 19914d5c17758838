"""Number of cores that this process may use."""

import math
import os
from pathlib import Path

#: Folder of a container's resource limits.
CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Number of cores in this process's affinity mask, or of all cores on systems without one; at
    most a container's share of processor time, rounded up."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return math.ceil(min(cores, _share(CGROUP)))


def _share(cgroup: Path) -> float:
    """Processor time that a container may use, in cores; infinity without a limit."""
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
