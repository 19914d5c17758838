"""Turns of threads on an emulated GPU, which only one thread at a time may call; on a real one none
are taken."""

import os
import threading
from collections import deque
from contextlib import contextmanager

from chainer_jo.engine.cuda import sharing
from chainer_jo.method.updater import JointUpdater


class Turns:
    """A lock that waiting threads get in the order in which they asked for it."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting = deque()

    def __enter__(self):
        mine = object()
        with self._changed:
            self._waiting.append(mine)
            self._changed.wait_for(lambda: self._waiting[0] is mine)

    def __exit__(self, *_):
        with self._changed:
            self._waiting.popleft()
            self._changed.notify_all()


def take_turns(patch=setattr):
    """Has runs that share a GPU, if it is emulated, take turns step by step."""
    turns, own_stream, update_core = Turns(), sharing.own_stream, JointUpdater.update_core

    @contextmanager
    def in_turn(cupy):
        with turns, own_stream(cupy):
            yield

    def step_in_turn(self):
        update_core(self)
        turns.__exit__()
        turns.__enter__()

    if "GPU_EMULATOR_BUILD" in os.environ:
        patch(sharing, "own_stream", in_turn)
        patch(JointUpdater, "update_core", step_in_turn)
