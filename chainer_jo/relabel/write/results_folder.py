"""Output folder of ``chainer-jo relabel``, with records of the data and flags of its results, and
of the files written, so that results of others and changed files are never overwritten."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from chainer_jo import files
from chainer_jo.errors import UserError

#: Records of the data, and of the flags and files of the results.
BOUND, MADE = "data.json", "results.json"
LABELS, SOFT_LABELS, REPORT, MODEL = "labels.csv", "soft_labels.npz", "report.html", "model.npz"
#: Folder of small pictures beside a report of many images.
PICTURES = "report-pictures"
WRITTEN = (LABELS, SOFT_LABELS, REPORT, PICTURES, MODEL)
#: Keys and types of the records, which tell them from other files of these names.
RECORDED: dict[str, dict[str, type]] = {
    BOUND: dict.fromkeys(("train", "validation", "test"), str),
    MADE: {"flags": dict, "labels": list, "applied": dict, "choice": dict},
}
#: Folder of the runs, and words, of results of earlier versions that were trained on images.
RUNS, EARLIER = "runs", "trained on images by an earlier version"


class ResultsFolder:
    """The folder ``--out`` of a command on data with these fingerprints, by the use of each set;
    ``flags`` are the values of the flags that decide the labels, by name."""

    def __init__(self, path: Path, fingerprints: Mapping[str, str], flags: Mapping) -> None:
        self.path = path
        self._fingerprints = dict(fingerprints)
        self._flags = dict(flags)
        self._made = self._record(MADE, {"flags", "labels"})

    def _record(self, name: str, least: set[str]) -> dict:
        """Reads a record, which has the keys ``least``; empty without the file. Raises UserError
        for a file that is no such record."""
        path = self.path / name
        if not path.exists():
            return {}
        record, kinds = files.read_json(path, object, missing={}), RECORDED[name]
        if not (isinstance(record, dict) and least <= record.keys() <= kinds.keys()):
            self._refuse(name)
        if not all(isinstance(value, kinds[key]) for key, value in record.items()):
            self._refuse(name)
        if name == BOUND and not all(re.fullmatch("[0-9a-f]{16}", x) for x in record.values()):
            self._refuse(name)
        return record

    def _refuse(self, name: str) -> NoReturn:
        raise UserError(f"--out {self.path}: has a {name} of its own, expected another folder")

    def check(self) -> None:
        """Raises UserError for results of other data or flags, or files that this command has not
        written."""
        bound = self._record(BOUND, {"train"})
        if not (bound and self._made):
            for name in (*WRITTEN, *([] if bound else [MADE])):
                if (self.path / name).exists():
                    self._refuse(name)
        if not bound:
            return
        made = self._made.get("flags", {})
        if (self.path / RUNS).exists() or made.get("from-scratch") or made.get("resnet50-weights"):
            raise UserError(
                f"--out {self.path}: its results were {EARLIER}, expected another --out folder"
            )
        if any((self.path / name).exists() for name in WRITTEN) and bound != self._fingerprints:
            raise UserError(
                f"{self.path / BOUND}: the results there are of data with fingerprints "
                f"{_shown(bound)}, these have {_shown(self._fingerprints)}; expected the same "
                "images and labels, or another --out folder"
            )
        if not self._made:
            return
        for name, value in self._flags.items():
            before = self._made["flags"].get(name)
            if before != value:
                raise UserError(
                    f"--out {self.path}: its results were made with --{name} {_default(before)}, "
                    f"now it is {_default(value)}; expected the same, or another --out folder"
                )
        labels = self.path / LABELS
        if labels.exists() and _digest(files.content(labels)) not in self._made["labels"]:
            raise UserError(
                f"{labels}: was changed since it was written, and would be overwritten; expected "
                "it under another name, or another --out folder"
            )

    def bind(self, apply: Path | None) -> None:
        """Records that results from now on are of these data. Raises OSError if a corrected set
        could not be written to ``apply``."""
        if apply and not apply.exists():
            apply.mkdir(parents=True)
            apply.rmdir()
        path = self.path / BOUND
        if files.read_json(path, missing=None) != self._fingerprints:
            files.write_json(path, self._fingerprints)

    def write_labels(self, table: str, choice: Mapping[str, float]) -> None:
        """Writes ``labels.csv`` after a record of its flags and digest, to tell it from an edited
        one, and of the choice of features. The record has the digest of the old file as well, which
        stays if the disk is full.

        Raises UserError if another command or the user has changed the folder since `bind`.
        """
        if files.read_json(self.path / BOUND, missing=None) != self._fingerprints:
            raise UserError(
                f"{self.path / BOUND}: another command has begun here with other images or labels "
                "meanwhile; expected one at a time, or another --out folder"
            )
        now = ResultsFolder(self.path, self._fingerprints, self._flags)
        now.check()
        labels = self.path / LABELS
        digests = [_digest(table.encode())]
        if labels.exists():
            digests.append(_digest(files.content(labels)))
        self._made = {**now._made, "flags": self._flags, "labels": digests, "choice": dict(choice)}
        files.write_json(self.path / MADE, self._made)
        files.write_text(labels, table)

    def check_apply(self, apply: Path) -> None:
        """Raises UserError unless a corrected set can be written there, or has been; OSError for a
        path that cannot exist."""
        if self.path.resolve().is_relative_to(apply.resolve()):
            raise UserError(
                f"--apply {apply}: --out {self.path} is or lies in it, expected another"
            )
        for name in (BOUND, MADE, *WRITTEN):
            if apply.resolve().is_relative_to((self.path / name).resolve()):
                raise UserError(
                    f"--apply {apply}: is kept for the results, expected another folder"
                )
        try:
            apply.stat()  # raises what `exists` has kept to itself since Python 3.14
        except FileNotFoundError:
            return
        empty = apply.is_dir() and not any(apply.iterdir())
        if not empty and self._key(apply) not in self._made.get("applied", {}):
            raise UserError(f"--apply {apply}: not empty, expected a folder to be made")

    def to_apply(self, apply: Path, labels: str) -> bool:
        """True if the corrected set that ``labels`` identifies has yet to be written, which is
        recorded before; a set that was removed does not count. Raises UserError if another set
        has been written there."""
        key, applied = self._key(apply), self._made.get("applied", {})
        if key in applied and apply.exists() and any(apply.iterdir()):
            if applied[key] != labels:
                raise UserError(
                    f"--apply {apply}: has the set with other labels, expected a folder to be made"
                )
            return False
        self._made = {**self._made, "applied": {**applied, key: labels}}
        files.write_json(self.path / MADE, self._made)
        return True

    def _key(self, apply: Path) -> str:
        """Relative path, which stays the same when both folders are moved together."""
        return os.path.relpath(apply.resolve(), self.path.resolve())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _default(value) -> str:
    return "left out" if value is None else str(value)


def _shown(fingerprints: dict) -> str:
    return ", ".join(f"{use} {value}" for use, value in fingerprints.items())
