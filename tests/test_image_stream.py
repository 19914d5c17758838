"""The stream gives what decoding one by one gives, in order, and says when a worker cannot."""

import itertools
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image
from processes import alive, finish, start, wait_until

from chainer_jo.data.decoding import decode
from chainer_jo.data.image_stream import ImageStream
from chainer_jo.errors import Unfinished, UserError


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(20):
        pixels = rng.integers(256, size=(12 + i, 30 - i, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:02}.png")
    return [str(folder / f"{i:02}.png") for i in range(20)]


@pytest.fixture(scope="module", params=[0, 3])
def stream(request):
    stream = ImageStream(4, resize=16, crop=12, workers=request.param, ahead=2)
    yield stream
    stream.close()


def split(paths, sizes):
    paths = iter(paths)
    return [list(itertools.islice(paths, n)) for n in sizes]


def test_batches_in_order_whatever_their_size(stream, paths):
    batches = split(paths, [4, 4, 1, 4, 3, 4])
    expected = [np.stack([decode(path, 16, 12) for path in batch]) for batch in batches]
    seen = [images.copy() for images in stream.batches(batches)]
    assert len(seen) == len(expected)
    for images, right in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(images, right)


def test_a_batch_stays_while_the_next_ones_are_decoded(stream, paths):
    batches = stream.batches(split(paths, [4] * 5))
    first = next(batches)
    kept = first.copy()
    time.sleep(0.2)  # the workers run ahead meanwhile
    np.testing.assert_array_equal(first, kept)


def test_it_reads_no_further_ahead_than_asked(stream, paths):
    taken = []

    def endless():
        for i in itertools.count():
            taken.append(i)
            yield paths[:4]

    batches = stream.batches(endless())
    for _ in range(5):
        next(batches)
    assert len(taken) <= 5 + 2


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_reading_that_ends_early_leaves_nothing_to_wait_for(
    stream, paths, monkeypatch, interrupted
):
    batches = stream.batches(split(paths, [4] * 5))
    next(batches)
    if interrupted:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Future, "result", Mock(side_effect=[None, KeyboardInterrupt]))
            next(batches), next(batches)
    batches.close()
    (images,) = stream.batches([paths[5:9]])
    np.testing.assert_array_equal(images, [decode(path, 16, 12) for path in paths[5:9]])


def test_a_bad_image_is_named_when_its_batch_is_due(stream, paths, tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    batches = stream.batches([paths[:4], [*paths[:3], str(bad)], paths[:4]])
    next(batches)
    with pytest.raises(UserError, match="bad.jpg.*cannot be decoded"):
        next(batches)
    assert len(next(stream.batches([paths[:2]]))) == 2, "the stream itself goes on"


def test_memory_that_is_locked_for_a_gpu_is_unlocked(paths, monkeypatch):
    """The next stream's may be the same."""
    locked, events = set(), []

    def event():
        events.append(SimpleNamespace(synchronize=lambda: events.pop()))
        return events[-1]

    runtime = SimpleNamespace(
        hostRegister=lambda address, size, flags: locked.add(address),
        hostUnregister=lambda address: locked.remove(address),
    )
    cuda = SimpleNamespace(
        runtime=runtime, get_current_stream=lambda: SimpleNamespace(record=event)
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, empty=Mock()))
    stream = ImageStream(4, resize=16, crop=12, workers=0, on_cuda=True)
    list(stream.batches(split(paths, [4, 4])))
    assert locked and len(events) == 2
    stream.close()
    stream.close()
    assert not locked and not events


@pytest.mark.parametrize("asked", [False, True])
def test_a_dead_worker_is_noticed(paths, asked):
    """Killed before it is asked for a batch, or while it is at one."""
    stream = ImageStream(4, resize=16, crop=12, workers=2, ahead=1)
    batches = stream.batches(itertools.repeat(paths[:4]))
    next(batches)
    worker = list(stream._pool._processes.values())[1]
    if asked:
        os.kill(worker.pid, signal.SIGSTOP)
        threading.Timer(0.5, worker.kill).start()
    else:
        worker.kill()
        worker.join()
    with pytest.raises(Unfinished, match="an image decoding process died"):
        for _ in range(100_000):
            next(batches)


SCRIPT = """
import itertools, pathlib, sys, time
from contextlib import closing
from chainer_jo.child_processes import in_order
from chainer_jo.command_line import exit_codes
from chainer_jo.data.image_stream import ImageStream

if __name__ == "__main__":
    with exit_codes(), closing(ImageStream(4, resize=16, crop=12, workers=2)) as stream:
        kind, *paths = sys.argv[1:]
        decoded = stream.batches(itertools.repeat(paths))
        slept = in_order(time.sleep, itertools.repeat(0.01, 10_000), 2, 32)
        for _ in decoded if kind == "stream" else slept:
            pathlib.Path("begun").touch()
"""


LARGE = """
import contextlib, itertools
from chainer_jo.child_processes import in_order

if __name__ == "__main__":
    for taken in (1, 5, 9, 13):
        results = in_order(bytes, itertools.repeat(5_000_000, 100), 2, 4)
        for _ in range(taken):
            next(results)
        with contextlib.suppress(KeyboardInterrupt):
            results.throw(KeyboardInterrupt)
"""


def test_an_interrupt_waits_for_no_half_sent_result(tmp_path):
    (tmp_path / "script.py").write_text(LARGE)
    finish(start([tmp_path / "script.py"], cwd=tmp_path), 0, timeout=60)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["stream", "in order"])
def test_child_processes_end_with_their_parent(paths, tmp_path, kind, how):
    """From the keyboard, which all processes hear, or by itself alone."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [tmp_path / "script.py", kind, *paths[:4]]
    script = start(command, start_new_session=True, cwd=tmp_path)
    wait_until((tmp_path / "begun").exists)
    assert len(alive(script.pid)) > 2
    os.killpg(script.pid, how) if how == signal.SIGINT else script.send_signal(how)
    try:
        # Until the last process has closed its standard error.
        said = finish(script, 130 if how == signal.SIGINT else -how).stderr
        assert said == "" or how != signal.SIGINT
        wait_until(lambda: not alive(script.pid))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
