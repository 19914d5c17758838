"""A figure that is drawn by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chainer_jo.experiments.store import RunStore
from chainer_jo.report.output import Output, Page


@dataclass(frozen=True)
class Drawing(Output):
    """A figure that needs no run: the files ``drawn``, which differ in their endings.

    Parameters
    ----------
    description : the alternative text.
    """

    number: int
    caption: str
    description: str
    drawn: tuple[Path, ...]

    kind = "figure"

    def page(self, store: RunStore, origin: dict) -> Page:
        """The caption."""
        return Page(self.title, self.caption)

    def data(self, store: RunStore, origin: dict) -> dict:
        """Caption and description."""
        return {
            "figure": self.number,
            "complete": True,
            "caption": self.caption,
            "description": self.description,
            "curves": [],
        }

    def further(self, store: RunStore, origin: dict) -> dict[str, bytes]:
        """The drawing."""
        return {path.suffix: path.read_bytes() for path in self.drawn}
