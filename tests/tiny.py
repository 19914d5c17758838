"""A preset small enough for tests: a few digits, one unit, some seconds for a whole table."""

from dataclasses import replace

from chainer_jo.reproduction.experiments.experiment import Network
from chainer_jo.reproduction.experiments.presets import DIGITS, Study
from chainer_jo.reproduction.tables_and_figures.output import Results

TINY = replace(
    DIGITS,
    name="tiny",
    summary="for tests",
    network=Network((1,), (4,)),
    train_images=180,
    train_per_class=20,
    test_per_class=5,
    time_scale=0.05,
    average=3,
    trials=(2, 1, 1),
)
STUDY = Study(TINY, "digits")


def record(store, run, state="finished", **result):
    """Saves a result of a run in a store; gives it."""
    store.open(run)
    result = {"id": run.id, "state": state, **result}
    store.save_result(run, result)
    return result


def results(store, data="digits"):
    return Results(store, "tiny", data, "fp32")
