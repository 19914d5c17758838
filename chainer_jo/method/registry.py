"""Doors of the method: what a script of one's own can add, by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from chainer_jo.errors import UserError

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """Entries by name, which becomes part of the description of a run. Add your own under a new
    name, at the top level of a script. ``registry[name]`` raises UserError for an unknown name.

    ``what`` is the noun for an entry, ``every`` holds all registries, and ``added_by`` the file
    that added an entry: `provenance` notes it and the source files of the entry.
    """

    every: ClassVar[list[Registry]] = []

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.added_by: dict[str, Path] = {}
        self.every.append(self)

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._add({name: entry})

    def __ior__(self, entries: Mapping[str, Entry]) -> Self:  # type: ignore[misc, override]
        return self._add(entries)

    def _add(self, entries: Mapping[str, Entry]) -> Self:
        super().update(entries)
        file = Path(sys._getframe(2).f_code.co_filename)  # the caller of the caller
        self.added_by |= dict.fromkeys(entries, file)
        return self

    def __missing__(self, name: str) -> Entry:
        raise UserError(f"{self.what} {name!r}: expected one of {', '.join(self)}")
