"""Finished runs in one compressed file: what is committed in place of a folder for each.

One line of JSON per run: ``experiment`` (its description), ``result`` and ``log``. Labels and
weights are left out; ``labels_sha256`` in the result tells whether others are the same.
"""

from __future__ import annotations

import functools
import json
import lzma
from collections.abc import Iterable
from pathlib import Path

from chainer_jo import files
from chainer_jo.errors import UserError

#: Beside the folder ``runs``.
NAME = "runs.jsonl.xz"


def read(root: Path) -> dict[str, dict]:
    """By id, the packed runs of a results folder; none if it has no such file.

    Raises
    ------
    UserError
        if the file is damaged.
    """
    path = root / NAME
    return _read(path, path.stat().st_mtime_ns) if path.exists() else {}


@functools.lru_cache(maxsize=1)
def _read(path: Path, changed: int) -> dict[str, dict]:
    try:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            runs = [json.loads(line) for line in lines]
        return {run["result"]["id"]: run for run in runs}
    except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError) as error:
        raise UserError(f"{path}: not readable as packed runs ({error})") from None


def write(root: Path, runs: Iterable[dict]) -> None:
    """Packs runs, each a dict of ``experiment``, ``result`` and ``log``.

    The same runs give the same file, in whatever order they come.
    """
    ordered = sorted(runs, key=lambda run: run["result"]["id"])
    lines = "".join(json.dumps(run, separators=(",", ":")) + "\n" for run in ordered)
    packed = lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME)
    files.write(root / NAME, lambda file: file.write(packed))
