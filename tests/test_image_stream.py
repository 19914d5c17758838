"""The stream gives what decoding one by one gives, in order, and says when a worker cannot."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

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


def test_an_interrupt_between_two_workers_leaves_nothing_to_wait_for(stream, paths, monkeypatch):
    """Earlier workers' parts of a batch have been taken, later ones' have not."""
    workers = stream._workers
    interrupted, finish = workers[len(workers) // 2], type(workers[0]).finish
    batches = stream.batches(split(paths, [4] * 5))
    next(batches)

    def interrupt():
        monkeypatch.setattr(interrupted, "finish", lambda: finish(interrupted))
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted, "finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    (images,) = stream.batches([paths[5:9]])
    np.testing.assert_array_equal(images, np.stack([decode(path, 16, 12) for path in paths[5:9]]))


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


def test_stopping_early_leaves_nothing_behind(stream, paths):
    batches = stream.batches(split(paths, [4] * 5))
    next(batches)
    batches.close()
    again = next(stream.batches([paths[8:12]]))
    np.testing.assert_array_equal(again, [decode(path, 16, 12) for path in paths[8:12]])


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

    class Array:
        def __init__(self, shape, dtype):
            pass

        def set(self, images, stream):
            pass

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
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, empty=Array))
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
    worker = stream._workers[1]._process
    if asked:
        os.kill(worker.pid, signal.SIGSTOP)
        threading.Timer(0.5, worker.kill).start()
    else:
        worker.kill()
        worker.join()
    with pytest.raises(Unfinished, match=r"decoding process died \(exit code -9\)"):
        for _ in range(5):
            next(batches)


def test_workers_end_with_a_killed_parent(paths, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import sys\n"
        "from chainer_jo.data.image_stream import ImageStream\n"
        "if __name__ == '__main__':\n"
        "    stream = ImageStream(4, resize=16, crop=12, workers=2)\n"
        "    next(stream.batches([sys.argv[1:]]))\n"
        "    print(flush=True)\n"
        "    input()\n"
    )
    parent = start([script, *paths[:4]], stdin=subprocess.PIPE, start_new_session=True)
    parent.stdout.readline()
    assert len(alive(parent.pid)) > 2
    parent.kill()
    finish(parent, -signal.SIGKILL)
    wait_until(lambda: not alive(parent.pid), 20)
