"""Packing of the runs computed here, to be committed (``reproduce/pack.py``)."""

from __future__ import annotations

from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import ending, reference_parser, say
from chainer_jo.engine.cuda import cudnn_choices
from chainer_jo.errors import UserError
from chainer_jo.runs.store import PACKED, RunStore

#: Files that results depend on, in addition to the descriptions of runs: the data and, on a GPU,
#: cuDNN's plans.
OTHER_FILES = ("data.json", cudnn_choices.NAME)


def main(description: str, argv: list[str] | None = None) -> None:
    """Entry point; ends the process with 2 for bad input."""
    with ending():
        pack(description, argv)


def pack(description: str, argv: list[str] | None = None) -> None:
    """Adds every finished run of a results folder, and `OTHER_FILES`, to the packed ones; prints
    their number.

    Raises UserError if there is no finished run, or those packed already are of other data.
    """
    flags = reference_parser(description).parse_args(argv)
    computed, committed = flags.results / flags.preset, flags.reference / flags.preset
    store = RunStore(computed)
    if not store.results():
        raise UserError(f"{computed}: no finished run there, expected a results folder")
    _check_data(computed, committed)
    number, new = store.pack(committed)
    for name in OTHER_FILES:
        if (computed / name).exists() and computed != committed:
            packed = files.read_json(committed / name, missing={})
            files.write_json(committed / name, _joined(packed, files.read_json(computed / name)))
    path = committed / PACKED
    say(f"{path}: {number:,} runs, {new:,} of them new, in {path.stat().st_size / 1e6:.2f} MB")


def _joined(packed: dict, new: dict) -> dict:
    """Both JSON objects, new values first; the plans of each GPU are joined, so that those of runs
    packed before stay."""
    shared = (key for key in packed.keys() & new if isinstance(new[key], dict))
    return {**packed, **new, **{key: {**packed[key], **new[key]} for key in shared}}


def _check_data(computed: Path, committed: Path) -> None:
    """Raises UserError if the two folders are of different data."""
    path = committed / "data.json"
    ours, theirs = (files.read_json(f / "data.json", missing=None) for f in (computed, committed))
    if None not in (ours, theirs) and ours != theirs:
        raise UserError(
            f"{path}: the runs packed there are of {theirs.get('data')} with fingerprint "
            f"{theirs.get('fingerprint')}, those in {computed} of {ours.get('data')} "
            f"{ours.get('fingerprint')}; expected the same data, or another --reference folder"
        )
