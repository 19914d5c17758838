"""Names in the order that people expect."""

from __future__ import annotations

import re


def by_value(name: str) -> tuple[list[tuple[int, str]], str]:
    """Sorting key by which "9" comes before "10"; the name itself tells "09" from "9"."""
    runs = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(r), "") if r.isdecimal() else (-1, r) for r in runs], name
