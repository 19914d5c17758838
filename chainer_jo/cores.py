"""How many cores this process may use."""

import os


def usable_cores() -> int:
    """Those that it is bound to, where the system tells; otherwise all there are."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
