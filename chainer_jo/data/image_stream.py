"""Batches of images, decoded ahead of training by worker processes."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import cycle
from multiprocessing import current_process, get_context
from typing import Any

import numpy as np

from chainer_jo.child_processes import Processes, end_with_parent
from chainer_jo.data.decoding import decode
from chainer_jo.devices import usable_cores
from chainer_jo.errors import Unfinished


class ImageStream:
    """Decodes batches of images into a ring of reused buffers, several batches ahead.

    The buffers are shared with the worker processes: pixels do not pass through pipes. With CUDA
    they are page-locked, and each batch is one asynchronous copy.

    Parameters
    ----------
    batch_size : maximum number of images per batch.
    resize, crop : sides of the resized image and of its cropped centre, in pixels.
    workers : number of decoding processes, None for all cores but one; 0 decodes in a thread of
        this process, as does a process that may start no others.
    ahead : number of batches decoded ahead of the current one.
    on_cuda : True for CuPy arrays on the current device.
    """

    def __init__(
        self,
        batch_size: int,
        resize: int = 256,
        crop: int = 224,
        workers: int | None = None,
        ahead: int = 4,
        on_cuda: bool = False,
    ) -> None:
        if workers is None:
            workers = max(1, usable_cores() - 1)
        self.batch_size = batch_size
        self._resize = resize
        self._ahead = ahead
        self._parts = max(1, workers)
        shape = (ahead + 2, batch_size, crop, crop, 3)  # one batch in use, one being copied away
        # Anonymous memory: nothing is left behind when the processes are killed.
        memory = get_context("spawn").RawArray(ctypes.c_uint8, int(np.prod(shape)))
        self._slots = np.ctypeslib.as_array(memory).reshape(shape)
        self._upload = _Upload(self._slots) if on_cuda else None
        self._pool: Executor
        if workers and not current_process().daemon:
            self._pool = Processes(workers, None, _start, memory, shape)
            self._buffers = None  # each process has its view of them
        else:
            self._pool, self._buffers = ThreadPoolExecutor(1), self._slots
        self._reading: Generator[Any, None, None] | None = None

    def is_reading(self, batches: Iterator[Any]) -> bool:
        """True if these batches can still be read: no other sequence has begun since."""
        return batches is self._reading

    def batches(self, paths: Iterable[Sequence[str]]) -> Iterator[Any]:
        """Images of each batch of paths, in order: uint8 (n, crop, crop, 3).

        NumPy arrays are overwritten some batches later: use or copy each before the next. `paths`
        may be endless; it is read `ahead` batches in advance. A new sequence ends the current one.

        Raises UserError for an image that is missing or cannot be decoded, when its batch is due;
        `Unfinished` if a decoding process died.
        """
        if self._reading is not None:
            self._reading.close()
        self._reading = self._read(iter(paths))
        return self._reading

    def _read(self, paths: Iterator[Sequence[str]]) -> Generator[Any, None, None]:
        slots = cycle(range(len(self._slots)))
        begun: deque[tuple[int, int, list[Future]]] = deque()  # slot, number of images, their parts
        try:
            while True:
                while len(begun) <= self._ahead and (batch := next(paths, None)) is not None:
                    slot = next(slots)
                    begun.append((slot, len(batch), self._begin(slot, batch)))
                if not begun:
                    return
                slot, count, parts = begun[0]
                for part in parts:
                    part.result()
                begun.popleft()
                images = self._slots[slot, :count]
                yield self._upload(slot, images) if self._upload else images
        except BrokenExecutor:
            raise Unfinished("an image decoding process died") from None
        finally:  # the consumer has stopped early, or was interrupted
            wait([part for *_, parts in begun for part in parts if not part.cancel()])

    def _begin(self, slot: int, paths: Sequence[str]) -> list[Future]:
        if self._upload:
            self._upload.wait(slot)
        step, work = self._parts, partial(_decode, self._buffers, self._resize, slot)
        return [self._pool.submit(work, first, step, paths[first::step]) for first in range(step)]

    def close(self) -> None:
        """Ends the worker processes."""
        try:
            if self._reading is not None:
                self._reading.close()
        finally:
            self._pool.shutdown()
            upload, self._upload = self._upload, None
            if upload:
                upload.close()


_buffers: np.ndarray  # of a worker process


def _start(memory: ctypes.Array, shape: tuple[int, ...]) -> None:
    """Initialises a worker process."""
    global _buffers
    _buffers = np.ctypeslib.as_array(memory).reshape(shape)
    end_with_parent()


def _decode(
    buffers: np.ndarray | None, resize: int, slot: int, first: int, step: int, paths: Sequence[str]
) -> None:
    """Decodes every ``step``-th image of a batch into its slot. Raises UserError."""
    batch = (_buffers if buffers is None else buffers)[slot]
    for image, path in zip(batch[first::step], paths, strict=False):
        image[...] = decode(path, resize, crop=image.shape[0])


class _Upload:
    """Page-locks the slots and copies them to the current CUDA device, in the current stream."""

    def __init__(self, slots: np.ndarray) -> None:
        import cupy

        self._cupy = cupy
        self._copied: dict[int, Any] = {}
        self._address = slots.ctypes.data
        cupy.cuda.runtime.hostRegister(self._address, slots.nbytes, 0)

    def __call__(self, slot: int, images: np.ndarray) -> Any:
        stream = self._cupy.cuda.get_current_stream()
        array = self._cupy.empty(images.shape, np.uint8)
        array.set(images, stream=stream)
        self._copied[slot] = stream.record()
        return array

    def wait(self, slot: int) -> None:
        """Waits for the slot's last copy, after which the slot may be written again."""
        if slot in self._copied:
            self._copied.pop(slot).synchronize()

    def close(self) -> None:
        """Unlocks the slots, whose addresses the next stream may get."""
        for slot in list(self._copied):
            self.wait(slot)
        self._cupy.cuda.runtime.hostUnregister(self._address)
