"""How many cores this process may use."""

import os


def usable_cores() -> int:
    """The cores that this process is bound to, or all cores where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
