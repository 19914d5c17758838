"""Output folder of ``chainer-jo relabel``, with records of the data and flags of its results, and
of the files written, so that results of others and changed files are never overwritten."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
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


class ResultsFolder:
    """The folder ``--out`` of a command on data with these fingerprints, by the use of each set;
    ``flags`` are the values of the flags that decide the labels, by name.

    Raises UserError for results of other data or flags, or files that this command has not written.
    """

    def __init__(self, path: Path, fingerprints: Mapping[str, str], flags: Mapping) -> None:
        self.path = path
        self._fingerprints = dict(fingerprints)
        self._flags = dict(flags)
        above = next(each for each in (path, *path.absolute().parents) if each.exists())
        if not above.is_dir():
            raise UserError(f"--out {path}: {above} is a file, expected a folder")
        bound = self._record(BOUND, {"train"})
        self._made = self._record(MADE, {"flags", "labels"})
        there = [name for name in (*WRITTEN, MADE) if (path / name).exists()]
        if there and not (bound and self._made):
            self._refuse(there[0])
        if not self._made:
            return
        if there != [MADE] and bound != self._fingerprints:
            raise UserError(
                f"{path / BOUND}: the results there are of data with fingerprints {_shown(bound)}, "
                f"these have {_shown(self._fingerprints)}; expected the same images and labels, or "
                "another --out folder"
            )
        for name, before in {**dict.fromkeys(self._flags), **self._made["flags"]}.items():
            value = self._flags.get(name)
            if before != value and (name in self._flags or before):  # else a flag of before, unused
                was, now = ("left out" if x is None else x for x in (before, value))
                raise UserError(
                    f"--out {path}: its results were made with --{name} {was}, now it is {now}; "
                    "expected the same, or another --out folder"
                )
        if LABELS in there and self._labels_digest() not in self._made["labels"]:
            raise UserError(
                f"{path / LABELS}: was changed since it was written, and would be overwritten; "
                "expected it under another name, or another --out folder"
            )

    def _record(self, name: str, least: set[str]) -> dict:
        """Reads a record, which has the keys ``least``; empty without the file. Raises UserError
        for a file that is no such record."""
        path, kinds = self.path / name, RECORDED[name]
        if not path.exists():
            return {}
        record = files.read_json(path, object, missing={})
        if not (
            isinstance(record, dict)
            and least <= record.keys() <= kinds.keys()
            and all(isinstance(value, kinds[key]) for key, value in record.items())
            and (name == MADE or all(re.fullmatch("[0-9a-f]{16}", x) for x in record.values()))
        ):
            self._refuse(name)
        return record

    def _refuse(self, name: str) -> NoReturn:
        raise UserError(f"--out {self.path}: has a {name} of its own, expected another folder")

    def _labels_digest(self) -> str:
        return _digest(files.content(self.path / LABELS))

    def bind(self, apply: Path | None) -> None:
        """Records that results from now on are of these data. Raises OSError if a corrected set
        could not be written to ``apply``."""
        if apply and not apply.exists():
            apply.mkdir(parents=True)
            apply.rmdir()
        files.write_json(self.path / BOUND, self._fingerprints)

    def write_labels(self, table: str, choice: Mapping[str, float]) -> None:
        """Writes ``labels.csv`` after a record of its flags and digest, and of the choice of
        features. The record has the digest of the old file, too, which stays if the disk is full.
        Raises UserError if another command or the user has changed the folder since `bind`."""
        if files.read_json(self.path / BOUND, missing=None) != self._fingerprints:
            raise UserError(
                f"{self.path / BOUND}: another command has begun here with other images or labels "
                "meanwhile; expected one at a time, or another --out folder"
            )
        made = ResultsFolder(self.path, self._fingerprints, self._flags)._made
        digests = [_digest(table.encode())]
        if (self.path / LABELS).exists():
            digests.append(self._labels_digest())
        self._made = {**made, "flags": self._flags, "labels": digests, "choice": dict(choice)}
        files.write_json(self.path / MADE, self._made)
        files.write_text(self.path / LABELS, table)

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
                    f"--apply {apply}: {name} is a name of the results; choose another folder"
                )
        try:
            apply.stat()  # raises what `exists` has kept to itself since Python 3.14
        except FileNotFoundError:
            return
        empty = apply.is_dir() and not any(apply.iterdir())
        if not empty and self._key(apply) not in self._made.get("applied", {}):
            raise UserError(f"--apply {apply}: exists, expected a new or empty folder")

    def to_apply(self, apply: Path, labels: str, number: int) -> bool:
        """True if the corrected set that ``labels`` identifies, of a number of files, has yet to be
        written, which is recorded before; a set that was removed does not count. Raises UserError
        if another set, or a part of this one, is there."""
        key, applied = self._key(apply), self._made.get("applied", {})
        if key in applied:
            for unfinished in apply.glob(f"{files.TEMPORARY}*"):  # of a command that was killed
                shutil.rmtree(unfinished, ignore_errors=True)
            there = sum(len(names) for *_, names in os.walk(apply))
            if there and applied[key] != labels:
                raise UserError(
                    f"--apply {apply}: has the set with other labels, expected a folder to be made"
                )
            if there >= number:
                return False
            if there:
                raise UserError(
                    f"--apply {apply}: {there:,} of the set's {number:,} files are there; remove "
                    "them, and the set is written again"
                )
        self._made = {**self._made, "applied": {**applied, key: labels}}
        files.write_json(self.path / MADE, self._made)
        return True

    def _key(self, apply: Path) -> str:
        """Relative path, which stays the same when both folders are moved together."""
        return os.path.relpath(apply.resolve(), self.path.resolve())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _shown(fingerprints: dict) -> str:
    return ", ".join(f"{use} {value}" for use, value in fingerprints.items())
