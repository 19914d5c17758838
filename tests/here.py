"""An executor that computes runs in this process: others take seconds to start, and tiny runs do
not."""

from concurrent.futures import Executor, Future
from types import SimpleNamespace

from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.running import scheduler
from chainer_jo.reproduction.running.scheduler import Work


def noted(events):
    """Function that adds what a scheduler reports to a list."""
    return lambda *event: events.append(event)


class Here(Executor):
    """Does each call as it is submitted; takes the arguments of `Processes`."""

    def __init__(self, *_):
        pass

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def compute(experiments, store, data, computation, *on_event):
    """`scheduler.compute` in this process."""
    return scheduler.compute(
        experiments, Work(store, data, computation), Here(), lambda: 1, *on_event
    )


def compute_here(patch, executor=Here):
    """Has scripts compute in this process, on data that need not be pickled, by ``patch(object,
    name, value)``."""
    patch(app, "Processes", executor)
    patch(app, "pickle", SimpleNamespace(dumps=lambda load: load()))
