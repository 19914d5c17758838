"""Estimates of what runs cost, before and after the first has finished."""

import math
from dataclasses import replace

from tiny import STUDY

from chainer_jo.report.dry_run import script_lines
from chainer_jo.runs.runner import GUESS, MEASURED, UNKNOWN, Cost, duration
from chainer_jo.runs.store import RunStore

RUN = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)


def test_finished_runs_come_before_a_guess(tmp_path):
    store, epochs = RunStore(tmp_path), RUN.optimization.epochs
    guess = Cost.of(store, [RUN], "this", 2.0)
    assert guess == Cost(2.0, GUESS) and guess.seconds(RUN) == epochs * 2.0
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
