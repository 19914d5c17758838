"""Chosen cuDNN plan of each graph, kept beside the results, so that a resumed run rounds alike."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from chainer_jo import files
from chainer_jo.errors import UserError

#: Path below a results folder.
NAME = Path("cudnn", "plans.json")
#: Plans that were timed on GPUs whose results are in the repository.
SHIPPED = Path(__file__).with_name("plans.json")

_logger = logging.getLogger(__name__)


class Choices:
    """Plans by graph, for one kind of GPU and one version of cuDNN.

    The file has an object per machine, with the name of each graph's ``plan`` and the
    ``microseconds`` of all timed plans. Processes can share the file.

    Parameters
    ----------
    machine : name of the GPU and version of cuDNN.
    shipped : plans for this machine in the file that comes with the package.
    """

    def __init__(self, machine: str, shipped: Mapping[str, str] | None = None) -> None:
        self.machine = machine
        self.shipped = shipped or {}
        self._path: Path | None = None
        self._chosen: dict[str, dict] = {}

    def keep_in(self, folder: Path) -> None:
        """Keeps the choices in a results folder from now on: existing choices take precedence, and
        this process's earlier choices are added. Raises UserError if it cannot be written to."""
        self._path = folder / NAME
        with self._merged():
            pass

    def get(self, graph: str) -> str | None:
        """Name of a graph's chosen plan, or None."""
        choice = self._chosen.get(graph)
        return None if choice is None else choice["plan"]

    def record(
        self,
        graph: str,
        plan: str,
        microseconds: Mapping[str, float] | None = None,
        instead_of: str | None = None,
    ) -> str:
        """Chooses a graph's plan for good, and returns it; a plan that another process has kept
        meanwhile takes precedence, unless it is `instead_of`."""
        with self._merged() as chosen:
            if graph not in chosen or chosen[graph]["plan"] == instead_of:
                times = {name: round(t, 1) for name, t in (microseconds or {}).items()}
                chosen[graph] = {"plan": plan, "microseconds": times}
        return self._chosen[graph]["plan"]

    @contextlib.contextmanager
    def _merged(self) -> Iterator[dict[str, dict]]:
        """Choices of this process and of the file, to be added to."""
        if self._path is None:
            yield self._chosen
            return
        with _locked(self._path):
            stored = _read(self._path)
            if stored and self.machine not in stored:
                _logger.warning(
                    "%s: plans for %s; this is %s, whose plans are chosen again: runs that were "
                    "begun there go on with other rounding",
                    self._path, "; ".join(stored), self.machine,
                )  # fmt: skip
            chosen = {**self._chosen, **stored.get(self.machine, {})}
            yield chosen
            self._chosen = chosen
            if stored.get(self.machine) != chosen:
                files.write_json(self._path, {**stored, self.machine: chosen})


@functools.cache
def of(machine: str) -> Choices:
    """Choices of this process, common to all its backends."""
    shipped = _read(SHIPPED).get(machine, {})
    return Choices(machine, {graph: choice["plan"] for graph, choice in shipped.items()})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.to_lock(path.parent / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None


def _read(path: Path) -> dict[str, dict[str, dict]]:
    """Content of the file; empty, with a warning, if it is damaged."""
    try:
        stored = files.read_json(path, missing={})
        plans = [choice["plan"] for chosen in stored.values() for choice in chosen.values()]
        if not all(isinstance(plan, str) for plan in plans):
            raise TypeError
    except (UserError, AttributeError, KeyError, TypeError):
        _logger.warning("%s: damaged; plans are chosen again", path)
        return {}
    return stored
