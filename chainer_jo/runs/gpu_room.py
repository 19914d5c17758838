"""Memory check: the number of runs that fit on a GPU at a time, measured by the first one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_logger = logging.getLogger(__name__)


class Room:
    """Places for the runs of this process on its GPU: one, until the first run has measured what a
    run takes, then as many as fit.

    Parameters
    ----------
    device : name of the GPU, for the message.
    free : gives the free bytes on the GPU.
    """

    def __init__(self, device: str, free: Callable[[], int]) -> None:
        self._device = device
        self._free = free
        self._changed = threading.Condition()
        self._runs = 0
        self._fitting = 1
        self._before = 0
        self._measured = self._said = False

    @contextmanager
    def place(self, deadline: float | None) -> Iterator[bool]:
        """Context of a run, which begins when there is room; yields False if there is none at
        ``deadline``, a value of ``time.monotonic()``. One line says that a run has to wait for the
        end of others."""
        with self._changed:
            if self._measured and self._runs >= self._fitting and not self._said:
                self._said = True
                room = f"{self._device}: memory for {self._fitting} runs at a time"
                _logger.warning("%s; further runs wait", room)
            left = None if deadline is None else deadline - time.monotonic()
            has_place = self._changed.wait_for(lambda: self._runs < self._fitting, left)
            if has_place:
                self._runs += 1
                if self._runs == 1 and not self._measured:
                    self._before = self._free()
        try:
            yield has_place
        finally:
            with self._changed:
                self._runs -= has_place
                self._changed.notify_all()

    def measure(self) -> None:
        """Counts the places; called by a run that holds all its memory."""
        with self._changed:
            if not self._measured:
                free = self._free()
                self._fitting += free // max(self._before - free, 1)
                self._measured = True
                self._changed.notify_all()
