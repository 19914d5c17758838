"""On a GPU: graphs against calls, and runs that change their device."""

import runpy
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from unittest import mock

import chainer
import joint_step
import numpy as np
import pytest
import workload
from engines import ON_GPU, TOLERANCE
from processes import ROOT
from script_runs import in_this_process
from test_graph_training import JOINT, train
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.engine.backend import choose_backend
from chainer_jo.engine.cuda.cudnn import load
from chainer_jo.engine.cuda.graph_step import GraphStep
from chainer_jo.method.cnn_crf import CNNCRF
from chainer_jo.method.extensions import Paused
from chainer_jo.method.forward_correction import ForwardCorrection
from chainer_jo.method.objectives import JointObjective
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.run import Computation, Run
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.running.worker import warm_up

pytestmark = ON_GPU

cupy = chainer.backends.cuda.cupy
#: What `train` ends with.
TRAINED = "parameters", "velocity", "labels", "probabilities"


def example_loss():
    """The loss of examples/loss.py, which has no kernel of its own."""
    examples = ROOT / "examples"
    with (
        in_this_process(),
        mock.patch.dict(tables.METHODS),
        mock.patch.object(sys, "path", [str(examples), *sys.path]),
    ):
        return runpy.run_path(str(examples / "loss.py"))["GeneralizedCrossEntropy"]()


PRIOR, MATRIX = np.full(3, 1 / 3), np.eye(3) * 0.5 + 1 / 6
OBJECTIVES = {
    "joint": JOINT,
    "cross entropy": partial(JointObjective, PRIOR),
    "forward": partial(ForwardCorrection, MATRIX),
    "cnn-crf": partial(CNNCRF, MATRIX, PRIOR, 1000),
    "of the example": example_loss,
}


@pytest.mark.parametrize(
    ("objective", "precision", "times"),
    [
        *(("joint", precision, 2) for precision in TOLERANCE),
        *((objective, "mixed", 1) for objective in OBJECTIVES if objective != "joint"),
    ],
)
def test_calls_and_replays_agree_bit_for_bit(tmp_path, objective, precision, times):
    """Every objective is captured whole; replayed again it gives the same again."""
    options = OBJECTIVES[objective], 4 if times > 1 else 2, "@cupy:0", load(precision)
    called, reports, updater = train(tmp_path / "called", False, *options)
    assert not updater.replays and all(np.isfinite(array).all() for array in called)
    for name in ("replayed", "again")[:times]:
        replayed, same_reports, updater = train(tmp_path / name, True, *options)
        assert updater.replays
        for what, ours, theirs in zip(TRAINED, replayed, called, strict=True):
            assert np.array_equal(ours, theirs), f"{name}: {what} off by {abs(ours - theirs).max()}"
        assert reports == same_reports


def test_memory_stays_flat_over_many_replays(tmp_path):
    options = JOINT, 2, "@cupy:0", load("mixed"), 48  # pixels: megabytes for a graph
    train(tmp_path / "warm", True, *options)
    cupy.get_default_memory_pool().free_all_blocks()
    free = cupy.cuda.runtime.memGetInfo()[0]
    for turn in range(5):
        train(tmp_path / str(turn), True, *options)
    cupy.get_default_memory_pool().free_all_blocks()
    assert free - cupy.cuda.runtime.memGetInfo()[0] < 16 << 20


def trained(root, *computations):
    """The log of a small run that pauses after each epoch, computed in these ways in turn."""
    store, experiment, pauses = RunStore(root), STUDY.first_step("symmetric", 0.5, 0), 0
    while True:
        now = replace(computations[pauses % len(computations)], deadline=0.0)
        with store.lock(experiment), suppress(Paused):
            Run(experiment, digits.load(), store, now).finish()
            return store.log(experiment)
        pauses += 1


def test_a_run_may_change_its_device_after_any_epoch(tmp_path):
    """But for rounding nothing changes: 4e-7 of the losses, where the velocity of other elements
    made 3e-3 of it."""
    on_gpu, called, on_cpu = (
        Computation("cuda"), Computation("cuda", graph=False), Computation("cpu", engine="stock")
    )  # fmt: skip
    logs = [
        [{k: v for k, v in entry.items() if k != "elapsed_time"} for entry in log]
        for log in (
            trained(tmp_path / "gpu", on_gpu),
            trained(tmp_path / "called", called),
            trained(tmp_path / "both", on_gpu, on_cpu),
        )
    ]
    whole, same, mixed = logs
    assert whole == same
    for expected, entry in zip(whole, mixed, strict=True):
        assert entry["loss"] == pytest.approx(expected["loss"], rel=1e-5), entry["epoch"]
        for name in ("validation", "test"):  # of the running averages
            assert entry[name] == pytest.approx(expected[name], abs=0.02), entry["epoch"]


def test_a_refused_capture_is_not_timed_as_a_graph(monkeypatch):
    monkeypatch.setattr(GraphStep, "_capture", lambda *arguments: None)
    with pytest.raises(workload.Missing, match="no step was captured"):
        joint_step.joint_step(workload.load("digits", 4), "cudnn", "fp32", "cuda", graph=True)


def test_backends_choose_cudnn_here():
    warm_up(Computation("cuda:0"), "mixed")
    chosen = choose_backend("cuda", "mixed")
    assert (chosen.name, chosen.precision) == ("cudnn", "mixed")
