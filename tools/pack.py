"""Packs your finished runs into results/reference, where they can be committed."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import exit_codes, folders_parser, print_safely
from chainer_jo.engine.cuda import cudnn_choices
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import LABELS, PACKED, WEIGHTS, RunStore, read_packed

#: Digests of the arrays that are committed beside packed runs, for ``sha256sum --check``.
SUMS = "SHA256SUMS"
#: Files that results depend on, in addition to the descriptions of runs: the data and, on a GPU,
#: cuDNN's plans.
OTHER_FILES = ("data.json", cudnn_choices.NAME)


def main(argv: list[str] | None = None) -> None:
    """Adds every finished run of a results folder, and `OTHER_FILES`, to the packed ones; prints
    their number. With ``--keep`` copies labels and weights of packed runs instead.

    Raises UserError if there is no finished run, or those packed already are of other data; with
    ``--keep``, if a run is not packed or not the same one.
    """
    parser = folders_parser(__doc__, results="results", reference="results/reference")
    keep = "copy labels and weights of these packed runs beside the packed file; pack nothing"
    parser.add_argument("--keep", nargs="+", metavar="ID", help=keep)
    flags = parser.parse_args(argv)
    computed, committed = flags.results / flags.preset, flags.reference / flags.preset
    store = RunStore(computed)
    if not store.results():
        raise UserError(f"{computed}: no finished run there, expected a results folder")
    committed.mkdir(parents=True, exist_ok=True)
    with files.to_lock(committed / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # from reading to replacing, no other command writes
        for unfinished in committed.rglob(f"*{'[0-9a-f]' * 8}.tmp"):  # of commands that were killed
            unfinished.unlink()
        _check_data(computed, committed)
        if flags.keep:
            _keep(flags.keep, store, committed)
        else:
            _pack_with_others(store, computed, committed)


def _pack_with_others(store: RunStore, computed: Path, committed: Path) -> None:
    number, new = pack(store, committed)
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
        keep_arrays(store, Experiment.from_dict(packed[run_id]["experiment"]), committed)
    kept = list(committed.glob("runs/*/*.npz"))
    size = sum(path.stat().st_size for path in kept) / 1e6
    print_safely(f"{committed / 'runs'}: labels and weights, {len(kept)} files, {size:.2f} MB")


def pack(store: RunStore, root: Path) -> tuple[int, int]:
    """Packs every finished run into the results folder ``root``, in addition to the runs packed
    there; returns the number of packed runs, and of new ones among them. The same runs give the
    same file. Raises UserError for a run that is packed there with other numbers.
    """
    with files.expected(root / PACKED, "a Python built with liblzma"):
        import lzma
    before = read_packed(root)
    runs = {**before, **store.finished()}
    for run_id in before:
        if _numbers(runs[run_id]) != _numbers(before[run_id]):
            raise _other_numbers(store.root / "runs" / run_id, root)
    lines = (json.dumps(runs[run_id], separators=(",", ":")) for run_id in sorted(runs))
    text = "".join(line + "\n" for line in lines)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    files.write_bytes(root / PACKED, packed)
    return len(runs), len(runs.keys() - before.keys())


def keep_arrays(store: RunStore, experiment: Experiment, root: Path) -> None:
    """Copies weights and final labels of a run to the results folder ``root``, in which the run is
    packed, and notes their SHA-256 in ``runs/SHA256SUMS`` there.

    Raises UserError unless the run finished here with them, with the numbers that are packed.
    """
    folder, computed = store.folder(experiment), store.finished().get(experiment.id)
    names = [WEIGHTS] + [LABELS] * bool(experiment.relabelling)
    if computed is None or not all((folder / name).exists() for name in names):
        raise UserError(f"{folder}: expected a finished run with {' and '.join(names)}")
    store.soft_labels(experiment)  # damaged ones are an error
    contents = {name: files.content(folder / name) for name in names}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    if computed["result"].get("weights_sha256", digests[WEIGHTS]) != digests[WEIGHTS]:
        raise UserError(f"{folder / WEIGHTS}: changed since it was written; remove {folder}")
    if _numbers(computed) != _numbers(read_packed(root)[experiment.id]):
        raise _other_numbers(folder, root)
    path = root / "runs" / SUMS
    with files.expected(path, "a digest and a name in each line"):
        lines = files.content(path).decode().splitlines() if path.exists() else []
        sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    for name, content in contents.items():
        files.write_bytes(root / "runs" / experiment.id / name, content)
        sums[f"{experiment.id}/{name}"] = digests[name]
    files.write_text(path, "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def _other_numbers(folder: Path, root: Path) -> UserError:
    return UserError(f"{folder}: other numbers than {root / PACKED} has, expected the same")


def _numbers(run: dict) -> dict:
    """Scores, digest of the labels and log of a packed run, without times, and without the
    predictions of a second step for the training images, which packed runs lack."""
    log = [{k: v for k, v in epoch.items() if k != "elapsed_time"} for epoch in run["log"]]
    result, second = run["result"], run["experiment"].get("first_step")
    scores = {
        (which, name): value
        for which in ("best", "last")
        for name, value in (result.get(which) or {}).items()
        if not (second and name.startswith("recovery"))
    }
    keys = "state", "data", "labels_sha256"
    return {"log": log, "scores": scores, **{key: result.get(key) for key in keys}}


def _joined(packed: dict, new: dict) -> dict:
    """Both JSON objects, new values first; the plans of each GPU are joined, so that plans of runs
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
            f"{ours.get('fingerprint')}; expected the same data; choose another --reference folder"
        )


if __name__ == "__main__":
    with exit_codes():
        main()
