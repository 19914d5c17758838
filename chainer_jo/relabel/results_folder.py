"""The folder that ``chainer-jo relabel`` writes to: whose data its results are of, by which flags
they were made, and what in it somebody has changed since."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from chainer_jo import files
from chainer_jo.errors import UserError

#: Whose data the results are of; how they were made and what was written.
BOUND, MADE = "data.json", "results.json"
LABELS, SOFT_LABELS, REPORT, MODEL = "labels.csv", "soft_labels.npz", "report.html", "model.npz"
WRITTEN = (LABELS, SOFT_LABELS, REPORT, MODEL)
#: What each record may hold, and what tells it from somebody's own file of that name.
RECORDED: dict[str, dict[str, Callable[[Any], object]]] = {
    BOUND: dict.fromkeys(
        ("train", "validation", "test"),
        lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value),
    ),
    MADE: {
        "flags": lambda value: isinstance(value, dict),
        "labels": lambda value: isinstance(value, list),
        "applied": lambda value: isinstance(value, dict),
    },
}
#: Folders of what training has come to.
COMPUTED = ("runs",)


class ResultsFolder:
    """One ``--out``.

    Parameters
    ----------
    fingerprints : of the data, by the use of each set.
    flags : those that decide what the labels become, by name.
    """

    def __init__(self, path: Path, fingerprints: Mapping[str, str], flags: Mapping) -> None:
        self.path = path
        self._fingerprints = dict(fingerprints)
        self._flags = dict(flags)
        self._made = self._record(MADE, {"flags", "labels"})

    def _record(self, name: str, least: set[str]) -> dict:
        """What this command has written to a file, with ``least`` in it; nothing if it is not
        there. Raises UserError for somebody else's."""
        path = self.path / name
        if not path.exists():
            return {}
        found = files.read_json(path, object, missing={})
        if not (isinstance(found, dict) and least <= found.keys() <= RECORDED[name].keys()):
            self._refuse(name)
        if not all(RECORDED[name][key](value) for key, value in found.items()):
            self._refuse(name)
        return found

    def _refuse(self, name: str) -> NoReturn:
        raise UserError(f"--out {self.path}: has a {name} of its own, expected another folder")

    def check(self) -> None:
        """That its results are of these data and flags, and nothing in it is somebody's own.

        Raises UserError otherwise.
        """
        bound = self._record(BOUND, {"train"})
        if not (bound and self._made):
            for name in (*WRITTEN, *([] if bound else [MADE])):
                if (self.path / name).exists():
                    self._refuse(name)
        if not bound:
            return
        there = [name for name in (*COMPUTED, *WRITTEN) if (self.path / name).exists()]
        if there and bound != self._fingerprints:
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
        if labels.exists() and _digest(labels.read_bytes()) not in self._made["labels"]:
            raise UserError(
                f"{labels}: was changed since it was written, and would be written anew; expected "
                "it under another name, or another --out folder"
            )

    def bind(self) -> None:
        """Says that what is computed here from now on is of these data."""
        path = self.path / BOUND
        if files.read_json(path, missing=None) != self._fingerprints:
            files.write_json(path, self._fingerprints)

    def write_labels(self, table: str) -> None:
        """Writes ``labels.csv``; keeps by which flags it was made, and what tells it from one that
        somebody has changed: first, with what tells the one that is there, for either may be there
        if the disk is full.

        Raises UserError if the folder has become another data set's since `bind`.
        """
        if files.read_json(self.path / BOUND, missing=None) != self._fingerprints:
            raise UserError(
                f"{self.path / BOUND}: another command has begun here with other images or labels "
                "meanwhile; expected one at a time, or another --out folder"
            )
        labels = self.path / LABELS
        told = [
            _digest(table.encode()),
            *([_digest(labels.read_bytes())] if labels.exists() else []),
        ]
        self._made = {**self._made, "flags": self._flags, "labels": told}
        files.write_json(self.path / MADE, self._made)
        files.write_text(labels, table)

    def check_apply(self, apply: Path) -> None:
        """That a corrected set would be written to a place of its own, or has been already.

        Raises UserError otherwise, and OSError for a path that cannot be.
        """
        if self.path.resolve().is_relative_to(apply.resolve()):
            raise UserError(
                f"--apply {apply}: --out {self.path} is or lies in it, expected another"
            )
        for name in (BOUND, MADE, *COMPUTED, *WRITTEN):
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
        """Whether this corrected set has yet to be written there, which is kept before that: one
        that is not there does not count.

        Parameters
        ----------
        labels : what tells the set from others.

        Raises
        ------
        UserError
            if another one has been.
        """
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
        """The same wherever both folders are moved together."""
        return os.path.relpath(apply.resolve(), self.path.resolve())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _default(value) -> str:
    return "left out" if value is None else str(value)


def _shown(fingerprints: dict) -> str:
    return ", ".join(f"{use} {value}" for use, value in fingerprints.items())
