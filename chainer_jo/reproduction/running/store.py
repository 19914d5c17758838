"""Storage of runs: one folder each, with files written whole, locked while the run is computed."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment

#: Compressed file of finished runs, beside the folder ``runs``, which is committed in its place.
#: One line of JSON per run: ``experiment`` (its description), ``result`` and ``log``. Labels and
#: weights are not in it; ``labels_sha256`` in the result identifies the labels.
PACKED = "runs.jsonl.xz"
#: Weights of a run and final labels of a first step, in its folder.
WEIGHTS, LABELS = "model.npz", "labels.npz"
#: Checkpoint of an unfinished run, and all files that a run writes in its folder.
SNAPSHOT = "snapshot.npz"
_FILES = ("experiment.json", "result.json", "log.json", LABELS, WEIGHTS, SNAPSHOT)
_REMOVE_FOLDER = "it as written; remove its folder, its run is then done again"
_REMOVE_FILE = "it as written; remove it, its run is then done again"
_AS_PACKED = "the file as it was packed"
_CHANGED = "changed since it was written"
#: Files, when they were written, and the digests of what they held.
_found_whole: set[tuple[Path, int, str]] = set()


class RunStore:
    """The runs below ``root/runs``: ``<id>/experiment.json``, ``log.json``, ``result.json``,
    ``labels.npz``. A run without a folder may be packed (`read_packed`).

    A result holds the SHA-256 of itself, its log, labels and weights, which are checked when they
    are read: against damage, not against forgery.

    Any number of processes may use one store: a run belongs to whoever holds its lock, and the
    operating system gives the lock back when its holder dies.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def _packed(self) -> dict[str, dict]:
        return read_packed(self.root, logs=False)

    def folder(self, experiment: Experiment) -> Path:
        return self.root / "runs" / experiment.id

    def open(self, experiment: Experiment) -> Path:
        """The folder of a run, made if need be, with its description in it.

        Raises UserError if the folder cannot be written to, is a link, or holds another
        description.
        """
        folder = self.folder(experiment)
        if folder.is_symlink():  # nothing is written or removed where it leads
            raise UserError(f"run folder {folder}: a link, expected a folder")
        if (folder / "experiment.json").exists():
            _kept_description(folder)
        else:
            files.write_json(folder / "experiment.json", experiment.to_dict())
        return folder

    def result(self, experiment: Experiment) -> dict | None:
        """The result of an ended run, or None; its ``state`` is ``finished`` or ``diverged``."""
        kept = _kept_result(self.folder(experiment))
        return kept or self._packed().get(experiment.id, {}).get("result")

    def diverged(self, experiment: Experiment) -> bool:
        """True if a run has ended by divergence, without weights."""
        result = self.result(experiment)
        return result is not None and result["state"] == "diverged"

    def lost_labels(self, experiment: Experiment) -> bool:
        """True if a first step has finished, but its final labels are not here."""
        return bool(
            experiment.relabelling
            and self.result(experiment)
            and not self.diverged(experiment)
            and self.soft_labels(experiment) is None
        )

    def log(self, experiment: Experiment) -> list[dict]:
        """The epochs so far, one dict each; empty before the first. A packed run that is being
        redone has the log of its packed result."""
        folder = self.folder(experiment)
        packed = read_packed(self.root).get(experiment.id)
        if not packed or (folder / "result.json").exists():
            return _kept_log(folder)
        with files.expected(self.root / PACKED, _AS_PACKED):
            _check_log(packed["log"], packed["result"], self.root / PACKED)
        return packed["log"]

    def epochs_done(self, experiment: Experiment) -> int:
        """Epochs logged in the run's folder, whatever is packed; 0 if it has a result and is about
        to be redone."""
        folder = self.folder(experiment)
        return 0 if _kept_result(folder) else len(_kept_log(folder))

    def snapshot(self, experiment: Experiment) -> Path:
        """The checkpoint from which an unfinished run resumes, if it exists."""
        return self.folder(experiment) / SNAPSHOT

    def epochs_left(self, experiment: Experiment) -> int:
        """Epochs left of a run to do: all without a checkpoint."""
        epochs = experiment.optimization.epochs
        if not self.snapshot(experiment).exists():
            return epochs
        return epochs - self.epochs_done(experiment)

    def results(self) -> list[dict]:
        """The results of all finished runs, by id."""
        results = {run_id: run["result"] for run_id, run in self._packed().items()}
        for path in (self.root / "runs").glob("*/result.json"):
            if kept := _kept_result(path.parent):  # another process may begin it again
                results[path.parent.name] = kept
        return [results[run_id] for run_id in sorted(results)]

    def features(self) -> set[str]:
        """Names of the features that pseudo labels of the runs here were clustered from."""
        paths = (self.root / "runs").glob("*/experiment.json")
        described = [run["experiment"] for run in self._packed().values()]
        described += (_kept_description(path.parent) for path in paths)
        return {e["noise"]["features"] for e in described if e["noise"].get("features")}

    def finished(self) -> dict[str, dict]:
        """Ended runs by id, packed ones too: ``experiment``, ``result`` and ``log`` of each, as
        they are packed.

        Descriptions are unchanged, as ids follow from them: a rule or noise that they name may be
        registered in one script only.
        """
        runs = dict(read_packed(self.root))
        for path in (self.root / "runs").glob("*/result.json"):
            folder = path.parent
            if result := _kept_result(folder):
                description, log = _kept_description(folder), _kept_log(folder)
                runs[folder.name] = {"experiment": description, "result": result, "log": log}
        return runs

    def soft_labels(self, experiment: Experiment) -> np.ndarray | None:
        """The final labels (n, c) float32 of a first step, or None if they are not here. A file of
        other labels, left by a redone run that was killed before its result, does not count."""
        folder = self.folder(experiment)
        labels, result = _labels(folder), self.result(experiment) or {}
        if labels is None or "labels_sha256" not in result:
            return labels
        if result["labels_sha256"] == _digest(labels):
            return labels
        if result == _kept_result(folder):
            with files.expected(folder / LABELS, _REMOVE_FILE):
                raise ValueError(_CHANGED)
        return None

    def save_labels(self, experiment: Experiment, labels: np.ndarray) -> str:
        """Saves labels (n, c) float32; returns the SHA-256 of their values."""
        files.write(
            self.folder(experiment) / LABELS, lambda file: np.savez_compressed(file, labels=labels)
        )
        return _digest(labels)

    def save_result(self, experiment: Experiment, result: dict) -> None:
        """Saves the result of a run whose log and, if it has finished, weights exist."""
        folder = self.folder(experiment)
        result = {**result, "log_sha256": files.json_digest(_log(folder))}
        if result.get("state") == "finished" and (folder / WEIGHTS).exists():
            result["weights_sha256"] = files.digest(folder / WEIGHTS, 64)
        digest = files.json_digest(_without_digest(result))
        files.write_json(folder / "result.json", {**result, "sha256": digest})

    def reset(self, experiment: Experiment) -> None:
        """Removes the result of a run to be redone and, without a checkpoint, its log. The caller
        holds the lock."""
        folder = self.folder(experiment)
        (folder / "result.json").unlink(missing_ok=True)
        if not self.snapshot(experiment).exists():
            (folder / "log.json").unlink(missing_ok=True)

    def lock(self, experiment: Experiment) -> contextlib.AbstractContextManager[bool]:
        """`locked` for a run while the body runs."""
        return locked(self.open(experiment) / "lock")

    def remove_temporaries(self, experiment: Experiment) -> None:
        """Removes the checkpoint of a finished run, and files that a kill left half written. The
        caller holds the lock."""
        _remove(self.folder(experiment), kept=[name for name in _FILES if name != SNAPSHOT])

    def delete(self, *experiments: Experiment) -> None:
        """Removes the files of runs, except descriptions and locks, and their kept labels. Other
        files in their folders stay. Each result goes first, so that a kill meanwhile leaves no
        finished run that lacks a file.

        Raises UserError if another process computes one of the runs, the folder of one is a link,
        or one is packed; nothing is removed.
        """
        for experiment in experiments:
            if experiment.id in self._packed():
                raise UserError(
                    f"run {experiment.id}: packed in {self.root / PACKED}, packed runs cannot be "
                    "deleted; choose another --results folder"
                )
        existing = [e for e in experiments if self.folder(e).exists()]
        for experiment in existing:  # one by one: all locks at once would exceed the open files
            with self._lock_to_delete(experiment):
                pass
        for experiment in existing:
            with self._lock_to_delete(experiment):
                _remove(self.folder(experiment), kept=["experiment.json"])
        for experiment in experiments:
            noise = experiment.noise
            path = noise.source.kept(noise, experiment.seed, self.root)
            if path and not path.parent.is_symlink():
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _lock_to_delete(self, experiment: Experiment) -> Iterator[None]:
        with self.lock(experiment) as mine:
            if not mine:
                raise UserError(
                    f"run {experiment.id}: another process computes this run; stop it first"
                )
            yield


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Locks a file while the body runs; yields False if another process has locked it.

    Raises UserError if it cannot be written to, or its file system does not lock.
    """
    with contextlib.ExitStack() as stack:
        try:
            fcntl.flock(stack.enter_context(files.to_lock(path)), fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        except OSError as error:
            raise UserError(
                f"cannot lock {path}: {error.strerror}; expected a writable file, no link, "
                "on a file system that locks"
            ) from None
        yield mine


def _remove(folder: Path, kept: Sequence[str]) -> None:
    """Removes the files of a run in its folder except the ones ``kept``, the result first."""
    paths = [path for path in folder.iterdir() if _ours(path.name) and path.name not in kept]
    for path in sorted(paths, key=lambda path: path.name != "result.json"):
        if path.is_symlink() or path.is_file():
            os.unlink(path)


def _ours(name: str) -> bool:
    """True for the name of a file that a run writes; `files.write` may leave a temporary one."""
    return re.sub(r"[0-9a-f]{8}\.tmp$", "", name) in _FILES


def _kept_description(folder: Path) -> dict:
    path = folder / "experiment.json"
    description = files.read_json(path)
    with files.expected(path, _REMOVE_FOLDER):
        _check_description(description, folder.name)
    return description


def _kept_result(folder: Path) -> dict | None:
    """The result in a run's folder, or None."""
    path = folder / "result.json"
    result = files.read_json(path, missing=None)
    if result is not None:
        with files.expected(path, _REMOVE_FOLDER):
            _check_result(result, folder.name, path)
    return result


def _kept_log(folder: Path) -> list[dict]:
    """The log in a run's folder, so far."""
    ended, log = (folder / "result.json").exists(), _log(folder)
    result = _kept_result(folder) if ended else None  # gone if the run was begun again meanwhile
    with files.expected(folder / "log.json", _REMOVE_FOLDER):
        _check_log(log, result or {}, folder / "log.json")
    return log


def _log(folder: Path) -> list:
    return files.read_json(folder / "log.json", list, missing=[])


def _labels(folder: Path) -> np.ndarray | None:
    path = folder / LABELS
    if not path.exists():
        return None
    with files.expected(path, _REMOVE_FILE):
        return np.asarray(files.arrays(path)["labels"], np.float32)


def _check_description(description: dict, run_id: str) -> None:
    if not files.json_digest(description).startswith(run_id.rpartition("-")[2]):
        raise ValueError(f"another description, not {run_id}'s")


def _check_result(result: dict, run_id: str, path: Path) -> None:
    """Raises ValueError for a result of another run, or one that was changed."""
    if result.get("id") != run_id:
        raise ValueError(f"result of {result.get('id')}, not of {run_id}")
    _check_digest(_without_digest(result), result.get("sha256"), path)


def _check_log(log: list, result: dict, path: Path) -> None:
    """Raises ValueError for a log that is not the one of this result, if the run has ended."""
    if not all(isinstance(epoch, dict) for epoch in log):
        raise ValueError("of another form")
    if result:
        _check_digest(log, result.get("log_sha256"), path)


def _check_digest(value: Any, digest: str | None, path: Path) -> None:
    """Raises ValueError unless a value, read from a file, has this digest. The same value of an
    unchanged file is checked once: tables and figures read it many times."""
    if not (digest and isinstance(digest, str)):
        raise ValueError("no checksum")
    found = path, path.exists() and path.stat().st_mtime_ns, digest
    if found not in _found_whole and digest != files.json_digest(value):
        raise ValueError(_CHANGED)
    _found_whole.add(found)


def _without_digest(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "sha256"}


def _digest(labels: np.ndarray) -> str:
    """SHA-256 of labels, in the order of the training images, as little-endian float32."""
    return hashlib.sha256(np.ascontiguousarray(labels, "<f4").tobytes()).hexdigest()


def read_packed(root: Path, logs: bool = True) -> dict[str, dict]:
    """Packed runs of a results folder by run id, with their logs or without, which takes a fraction
    of the time; empty if nothing is packed.

    Raises UserError if the file is damaged.
    """
    path = root / PACKED
    return _read_packed(path, path.stat().st_mtime_ns, logs) if path.exists() else {}


@functools.lru_cache(maxsize=2)
def _read_packed(path: Path, changed: int, logs: bool) -> dict[str, dict]:
    runs = {}
    with files.expected(path, _AS_PACKED):
        import lzma  # which some Pythons lack

        for line in lzma.decompress(files.content(path)).splitlines():
            # A run's log comes last; within a string its name would not have these quotes.
            run = json.loads(line if logs else line.partition(b',"log":')[0] + b"}")
            run_id = run["result"]["id"]
            _check_description(run["experiment"], run_id)
            _check_result(run["result"], run_id, path)
            _check_log(run["log"] if logs else [], {}, path)  # its digest is checked by `log`
            runs[run_id] = run
    return runs
