"""Algorithm 1 is built in one place, in one order, and few calls below a script."""

import ast
import multiprocessing
import re
import traceback
from dataclasses import replace

import pytest
from clothing1m_like import ON_DISK, make_clothing1m_like
from here import compute_here
from processes import ROOT
from script_runs import SMALL, run, table1
from tiny import STUDY

from chainer_jo.data import clothing1m, digits
from chainer_jo.errors import UserError
from chainer_jo.method.updater import JointUpdater
from chainer_jo.reproduction.running import worker
from chainer_jo.reproduction.running.run import Computation, Run
from chainer_jo.reproduction.running.store import RunStore

#: What the training loop consists of.
PARTS = {"BatchIterator", "FlatMomentumSGD", "JointUpdater", "LabelUpdate", "ExponentialShift"}


def called(source):
    """Names of the functions and classes that a file calls."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {getattr(function, "attr", getattr(function, "id", None)) for function in calls}


def test_the_training_loop_is_built_in_one_file():
    files = [*(ROOT / "chainer_jo").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    builders = {path.name for path in files if PARTS & called(path.read_text())}
    assert builders == {"algorithm1.py"}


def test_every_equation_is_named_in_the_code():
    files = [path for path in (ROOT / "chainer_jo/method").rglob("*.py") if path.stem != "__init__"]
    named = set()
    for path in files:
        for numbers in re.findall(r"\beqs?\.\s+(\d+(?:\s(?:and|to)\s\d+)?)", path.read_text()):
            named |= {int(number) for number in re.findall(r"\d+", numbers)}
    assert named == set(range(1, 14))


def log_of(experiment, folder):
    store = RunStore(folder)
    Run(experiment, digits.load(), store, Computation(engine="stock")).finish()
    return store.log(experiment)


def test_the_log_of_a_first_step_has_its_keys_in_their_order(tmp_path):
    """Files of earlier versions have it, and checkpoints hold the log."""
    for entry in log_of(STUDY.first_step("symmetric", 0.5, 0), tmp_path):
        assert list(entry) == [
            "loss", "cross_entropy", "classification", "prior", "entropy", "accuracy/noisy",
            "accuracy/true", "validation", "test", "recovery", "lr", "epoch", "iteration",
            "elapsed_time",
        ]  # fmt: skip


def test_the_learning_rate_is_divided_after_the_epochs_of_the_schedule(tmp_path):
    experiment = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
    sgd = experiment.optimization
    assert sgd.drops and sgd.epochs > sgd.drops[-1]
    rates = {entry["epoch"]: entry["lr"] for entry in log_of(experiment, tmp_path)}
    assert rates == pytest.approx(
        {e: sgd.learning_rate / 10 ** sum(d < e for d in sgd.drops) for e in rates}
    )
    assert len(rates) == sgd.epochs


def test_a_run_that_is_refused_leaves_no_processes(tmp_path):
    data = clothing1m.load(make_clothing1m_like(tmp_path / "small", size=18), ON_DISK.data.name)
    large = replace(ON_DISK, optimization=replace(ON_DISK.optimization, batch_size=10_000))
    cropped = replace(ON_DISK, optimization=replace(ON_DISK.optimization, pad=4, flip=True))
    for refused, words in (
        (large, "training images: expected at least 10000, one batch"),
        (cropped, "images on disk with pad 4, flip True: expected neither"),
    ):
        with pytest.raises(UserError, match=words):
            Run(refused, data, RunStore(tmp_path / "runs"), Computation(engine="stock", workers=1))
    assert not multiprocessing.active_children()


def test_few_frames_lie_between_a_script_and_a_step(preset, tmp_path, monkeypatch):
    stacks = []

    def step(updater, *arguments, usual=JointUpdater.step):
        stack = traceback.extract_stack()
        stacks.append([frame.name for frame in stack if frame.filename != __file__] + ["step"])
        usual(updater, *arguments)

    monkeypatch.setattr(JointUpdater, "step", step)
    compute_here(monkeypatch.setattr)
    monkeypatch.setattr(worker, "loaded", {})
    assert run(table1, tmp_path, *SMALL, "--engine", "stock", "--jobs", "1") == 0
    (frames,) = {tuple(stack[stack.index("main") :]) for stack in stacks}
    assert {"work", "submit", "execute", "finish", "update_core"} < set(frames)
    assert len(frames) <= 15, frames
