"""What ``--no-runs`` leaves as it is: files that more trials have gone into than there are here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from chainer_jo import files


def trials(content: Any) -> int:
    """Trials that numbers in a JSON file were taken from, over all of these numbers.

    Tables list them by cell, figures and claims count them by curve and comparison.
    """
    if isinstance(content, list):
        return sum(map(trials, content))
    if not isinstance(content, dict):
        return 0
    own = content.get("trials") or 0
    inside = sum(trials(value) for key, value in content.items() if key != "trials")
    return inside + (len(own) if isinstance(own, list) else own)


def loss(path: Path, content: Callable[[], Any]) -> str:
    """What a JSON file would lose if other content replaced it; empty if no trial."""
    before = trials(files.read_json(path, object, missing=None))
    after = trials(content()) if before else 0
    return f"{path.stem} ({after} of {before} numbers)" if after < before else ""
