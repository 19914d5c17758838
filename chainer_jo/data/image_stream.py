"""Batches of images, decoded ahead of training by worker processes."""

from __future__ import annotations

import contextlib
import ctypes
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from chainer_jo.data.decoding import decode
from chainer_jo.devices import usable_cores
from chainer_jo.errors import Unfinished, UserError


class ImageStream:
    """Decodes batches of images into a ring of reused buffers, several batches ahead.

    The buffers are shared with the worker processes: pixels do not pass through pipes. With CUDA
    they are page-locked, and each batch is one asynchronous copy.

    Parameters
    ----------
    batch_size : maximum number of images per batch.
    resize, crop : sides of the resized image and of its cropped centre, in pixels.
    workers : number of decoding processes; 0 decodes in this process, None for all cores but one.
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
        self._ahead = ahead
        context = get_context("spawn")  # a fork would inherit CUDA, which does not survive it
        shape = (ahead + 2, batch_size, crop, crop, 3)  # one batch in use, one being copied away
        # Anonymous memory: nothing is left behind when the processes are killed.
        memory = context.RawArray(ctypes.c_uint8, int(np.prod(shape)))
        self._slots = np.ctypeslib.as_array(memory).reshape(shape)
        self._upload = _Upload(self._slots) if on_cuda else None
        self._workers: Sequence[_WorkerProcess | _ThisProcess] = [
            _WorkerProcess(context, (memory, shape, resize)) for _ in range(workers)
        ] or [_ThisProcess(self._slots, resize)]
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
        begun: deque[tuple[int, int]] = deque()  # slot and number of images
        try:
            while True:
                while len(begun) <= self._ahead and (batch := next(paths, None)) is not None:
                    slot = next(slots)
                    self._begin(slot, batch)
                    begun.append((slot, len(batch)))
                if not begun:
                    return
                slot, count = begun[0]
                errors = self._finish()
                begun.popleft()
                if errors:
                    raise UserError(errors[0])
                images = self._slots[slot, :count]
                yield self._upload(slot, images) if self._upload else images
        finally:
            for worker in self._workers:  # the consumer has stopped early, or was interrupted
                worker.drain()

    def close(self) -> None:
        """Ends the worker processes."""
        try:
            if self._reading is not None:
                self._reading.close()
        finally:
            for worker in self._workers:
                worker.close()
            upload, self._upload = self._upload, None
            if upload:
                upload.close()

    def _begin(self, slot: int, paths: Sequence[str]) -> None:
        if self._upload:
            self._upload.wait(slot)
        count = len(self._workers)
        for first, worker in enumerate(self._workers):
            worker.begin((slot, first, count, list(paths[first::count])))

    def _finish(self) -> list[str]:
        """Waits for all workers' parts of the oldest batch; returns the error messages."""
        return [error for worker in self._workers if (error := worker.finish())]


class _ThisProcess:
    """A worker in this process, which decodes in `finish`."""

    def __init__(self, slots: np.ndarray, resize: int) -> None:
        self._slots, self._resize = slots, resize
        self._tasks: deque[tuple] = deque()

    def begin(self, task: tuple) -> None:
        self._tasks.append(task)

    def finish(self) -> str | None:
        return _decode_into(self._slots, self._resize, self._tasks.popleft())

    def drain(self) -> None:
        self._tasks.clear()

    close = drain


class _WorkerProcess:
    """A worker in its own process, which ends when its pipe is closed."""

    def __init__(self, context: Any, work: tuple) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *work), daemon=True)
        self._process.start()
        theirs.close()
        self._due = 0

    def begin(self, task: tuple) -> None:
        with self._noticing_death():
            self._pipe.send(task)
        self._due += 1

    def finish(self) -> str | None:
        with self._noticing_death():
            error = self._pipe.recv()
        self._due -= 1
        return error

    def drain(self) -> None:
        """Empties the pipe."""
        while self._due:
            self.finish()

    @contextlib.contextmanager
    def _noticing_death(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError):
            self._process.join(timeout=10)
            code = self._process.exitcode
            raise Unfinished(f"an image decoding process died (exit code {code})") from None

    def close(self) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, memory: ctypes.Array, shape: tuple[int, ...], resize: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    slots = np.ctypeslib.as_array(memory).reshape(shape)
    try:
        while True:
            pipe.send(_decode_into(slots, resize, pipe.recv()))
    except (EOFError, ConnectionError):
        return


def _decode_into(slots: np.ndarray, resize: int, task: tuple) -> str | None:
    """Decodes every `step`-th image of a batch into its slot; returns the error of a bad image."""
    slot, first, step, paths = task
    try:
        for image, path in zip(slots[slot, first::step], paths, strict=False):
            image[...] = decode(path, resize, crop=image.shape[0])
    except UserError as error:
        return str(error)
    return None


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
