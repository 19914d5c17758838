"""Packing of runs to be committed, and copies of labels and weights (``reproduce/pack.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import exit_codes, folders_parser, print_safely
from chainer_jo.engine.cuda import cudnn_choices
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import PACKED, RunStore, read_packed

#: Files that results depend on, in addition to the descriptions of runs: the data and, on a GPU,
#: cuDNN's plans.
OTHER_FILES = ("data.json", cudnn_choices.NAME)


def main(description: str, argv: list[str] | None = None) -> None:
    """Entry point; ends the process with 2 for bad input."""
    with exit_codes():
        pack(description, argv)


def pack(description: str, argv: list[str] | None = None) -> None:
    """Adds every finished run of a results folder, and `OTHER_FILES`, to the packed ones; prints
    their number. With ``--keep`` copies labels and weights of packed runs instead.

    Raises UserError if there is no finished run, or those packed already are of other data; with
    ``--keep``, if a run is not packed or not the same one.
    """
    parser = folders_parser(description, results="results", reference="results/reference")
    keep = "copy labels and weights of these packed runs beside the packed file; pack nothing"
    parser.add_argument("--keep", nargs="+", metavar="ID", help=keep)
    flags = parser.parse_args(argv)
    computed, committed = flags.results / flags.preset, flags.reference / flags.preset
    store = RunStore(computed)
    if not store.results():
        raise UserError(f"{computed}: no finished run there, expected a results folder")
    _check_data(computed, committed)
    if flags.keep:
        _keep(flags.keep, store, committed)
        return
    number, new = store.pack(committed)
    for name in OTHER_FILES:
        if (computed / name).exists() and computed != committed:
            packed = files.read_json(committed / name, missing={})
            files.write_json(committed / name, _joined(packed, files.read_json(computed / name)))
    path = committed / PACKED
    size = path.stat().st_size / 1e6
    print_safely(f"{path}: {number:,} runs, {new:,} of them new, in {size:.2f} MB")


def _keep(run_ids: Sequence[str], store: RunStore, committed: Path) -> None:
    packed = read_packed(committed)
    if unknown := [run_id for run_id in run_ids if run_id not in packed]:
        raise UserError(f"--keep {unknown[0]}: expected a run packed in {committed / PACKED}")
    for run_id in run_ids:
        store.keep_arrays(Experiment.from_dict(packed[run_id]["experiment"]), committed)
    kept = list(committed.glob("runs/*/*.npz"))
    size = sum(path.stat().st_size for path in kept) / 1e6
    print_safely(f"{committed / 'runs'}: labels and weights, {len(kept)} files, {size:.2f} MB")


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
