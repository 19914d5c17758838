"""The first estimate of what runs cost, where none has finished."""

import math
import time
from concurrent.futures import Future
from dataclasses import replace

import pytest
from engines import backend
from tiny import STUDY, TINY

from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.report.dry_run import script_lines
from chainer_jo.runs import cost
from chainer_jo.runs.cost import GUESS, MEASURED, TRIED, UNKNOWN, Cost, duration, measure, probe
from chainer_jo.runs.presets import HALF, Study
from chainer_jo.runs.run import Run, Settings
from chainer_jo.runs.store import RunStore

RUN = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)


def test_an_iteration_takes_what_a_run_says_it_does(tmp_path):
    tried = measure(RUN, TINY.image_shape, Settings(), 1)
    started = time.perf_counter()
    result = Run(RUN, digits.load(), RunStore(tmp_path), Settings()).finish()
    took = (time.perf_counter() - started) / result["iterations"]
    assert took / 50 < tried < took * 5  # so few iterations are mostly evaluation


def test_images_are_those_of_the_preset(monkeypatch):
    """Half-size CIFAR-10 in colour, in mixed precision: the shapes have to fit the network."""
    backend("mixed")
    monkeypatch.setattr(cost, "SECONDS", 0)
    study = Study(replace(HALF, batch_size=4), "cifar10-jpeg")
    assert measure(study.first_step("symmetric", 0.5, 0), HALF.image_shape, Settings(), 1) > 0


def test_what_cannot_be_tried_in_a_process_of_its_own_is_said():
    """What can be is tried by test_dry_run_lists_and_runs_nothing of test_scripts.py."""
    with pytest.raises(UserError, match="cudnn"):
        probe(RUN, TINY.image_shape, Settings(engine="cudnn"), 1)


def test_without_memory_there_is_no_estimate(monkeypatch):
    spent = Future()
    spent.set_exception(MemoryError("Out of memory allocating 65,536 bytes"))
    monkeypatch.setattr(cost.Processes, "call", lambda *_: spent)
    assert probe(RUN, TINY.image_shape, Settings(), 1) is None


def test_finished_runs_come_before_tried_iterations_and_these_before_a_guess(tmp_path):
    store, epochs = RunStore(tmp_path), RUN.optimization.epochs
    guess = Cost.of(store, [RUN], "this", 2.0)
    assert guess == Cost(2.0, GUESS) and guess.seconds(RUN) == epochs * 2.0
    assert guess.tried(3.0) == Cost(3.0, TRIED) and guess.tried(None) == guess
    store.open(RUN)
    store.save_result(RUN, {
        "id": RUN.id, "state": "finished", "seconds": 4 * epochs, "provenance": {"device": "this"},
    })  # fmt: skip
    assert Cost.of(store, [RUN], "this", 2.0) == Cost(4.0, MEASURED)
    assert Cost.of(store, [RUN], "another", 2.0) == guess
    assert Cost.of(store, [RUN], None, 2.0) == Cost(4.0, MEASURED)


def test_an_epoch_takes_what_the_median_of_the_finished_runs_took(tmp_path):
    store, epochs = RunStore(tmp_path), RUN.optimization.epochs
    runs = [replace(RUN, seed=seed) for seed in range(4)]
    for each, seconds in zip(runs, (3, 1, 50, 0.01), strict=True):
        state = "finished" if seconds >= 1 else "diverged"
        result = {"id": each.id, "state": state, "seconds": seconds * epochs,
                  "provenance": {"device": "this"}}  # fmt: skip
        store.open(each)
        store.save_result(each, result)
    assert Cost.of(store, runs, "this", 2.0) == Cost(3.0, MEASURED)


def test_a_gpu_is_not_given_the_seconds_of_a_cpu(tmp_path):
    unknown = Cost.of(RunStore(tmp_path), [RUN], "this", None)
    assert unknown.basis == UNKNOWN and math.isnan(unknown.seconds(RUN))
    assert duration(unknown.seconds(RUN)) == "?"

    class Output:
        name, experiments = "table1", [RUN]

    assert "nan" not in " ".join(script_lines([Output], {RUN: 1}, unknown))
