"""Doors of the method: what a script of one's own can add, by name."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from chainer_jo.errors import UserError

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """Entries by name, which becomes part of the description of a run. Add your own under a new
    name, at the top level of a script. ``registry[name]`` raises UserError for an unknown name.

    ``what`` is the noun for an entry, and ``every`` holds all registries: `provenance` notes the
    source files of their entries.
    """

    every: ClassVar[list[Registry]] = []

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what
        self.every.append(self)

    def __missing__(self, name: str) -> Entry:
        raise UserError(f"{self.what} {name!r}: expected one of {', '.join(self)}")
