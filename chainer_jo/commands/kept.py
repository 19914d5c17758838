"""What ``--no-runs`` leaves as it is: files that more trials have gone into than there are here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chainer_jo import files

#: What tells entries of a list apart: claims, cells of tables, curves of figures, comparisons.
NAMES = (("id",), ("row", "column"), ("label",), ("what",))


def trials(content: Any, where: str = "") -> Counter[str]:
    """Trials that the numbers in a JSON file were taken from, by the place of each number.

    Tables list them by cell, figures and claims count them by curve and comparison.
    """
    counted: Counter[str] = Counter()
    if isinstance(content, list):
        for entry in content:
            counted += trials(entry, where + _name(entry))
    elif isinstance(content, dict):
        own = content.get("trials") or 0
        counted[where] = len(own) if isinstance(own, list) else int(own)
        for key, value in content.items():
            if key != "trials":
                counted += trials(value, f"{where}/{key}")
    return counted


def _name(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    keys = next((keys for keys in NAMES if entry.keys() >= set(keys)), ())
    return json.dumps([entry[key] for key in keys])


def loss(path: Path, content: Callable[[], Any]) -> str:
    """What a JSON file would lose if other content replaced it; empty if no number is of fewer
    trials then."""
    with files.expected(path, "it removed, which has it written again"):
        before = trials(files.read_json(path, object, missing=None))
    kept = before & trials(content()) if before else before
    if kept == before:
        return ""
    return f"{path.stem} ({kept.total()} of {before.total()} numbers)"
