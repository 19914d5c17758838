"""Runs killed, interrupted, paused or shared between processes end as if nothing had happened."""

import contextlib
import json
import os
import random
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import processes
import pytest
from chainer import serializers
from chainer.serializers import save_npz
from pack import pack
from processes import HERE, ROOT
from tiny import STUDY

from chainer_jo import files
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method.extensions import Paused
from chainer_jo.reproduction.running import provenance, worker
from chainer_jo.reproduction.running.provenance import collect, other_code
from chainer_jo.reproduction.running.run import Computation, Run
from chainer_jo.reproduction.running.scheduler import pending, remove_temporaries, with_first_steps
from chainer_jo.reproduction.running.status import UNKNOWN, Cost
from chainer_jo.reproduction.running.store import RunStore

EXPERIMENTS = [
    STUDY.joint("symmetric", 0.5, 0),
    STUDY.baseline("cnn_crf", "asymmetric", 0.4, 0),
    STUDY.first_step("symmetric", 0.7, 1, rule="top", top=500),
]

#: A whole scheduler as a process of its own, like a script, with two workers or without; prints an
#: epoch or state per line, and when the result was written.
PROGRAM = """
import sys
import pickle
import chainer_jo
from chainer_jo.child_processes import Processes
from chainer_jo.data import digits
from chainer_jo.reproduction.running.run import Computation
from chainer_jo.reproduction.running.scheduler import Work, compute
from chainer_jo.reproduction.running.store import RunStore
from here import Here
from test_continuing import EXPERIMENTS
if __name__ == "__main__":
    store, kind = RunStore(sys.argv[1]), {"workers": Processes, "alone": Here}[sys.argv[2]]
    work = Work(store, pickle.dumps(digits.load), Computation(snapshot_seconds=0))
    def show(run, state, result):
        written = (store.folder(run) / "result.json").stat().st_mtime_ns if result else 0
        print(run.id, state, written, flush=True)
    with kind(2, 1) as executor:
        compute(EXPERIMENTS, work, executor, lambda: 2 if kind is Processes else 1, show)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Starts the program on a results folder, in a process group of its own."""
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(PROGRAM)

    def start(results, kind="workers"):
        env = processes.environment(HERE, ROOT / "tools", OMP_NUM_THREADS=1, OPENBLAS_NUM_THREADS=1)
        return processes.start([path, results, kind], env=env, start_new_session=True)

    return start


@pytest.fixture(scope="module")
def undisturbed(program, tmp_path_factory):
    results = tmp_path_factory.mktemp("undisturbed")
    processes.finish(program(results, "alone"))
    return outcome(results)


def outcome(results):
    """What a run leaves that may not depend on interruptions: arrays, log, scores."""
    store, found = RunStore(results), {}
    for experiment in (*EXPERIMENTS, EXPERIMENTS[0].first_step):
        folder = store.folder(experiment)
        for name in ("labels.npz", "model.npz"):
            if (folder / name).exists():
                found[experiment.id, name] = (folder / name).read_bytes()
        for entry in store.log(experiment):
            entry.pop("elapsed_time")
            found[experiment.id, "log", entry["epoch"]] = json.dumps(entry, sort_keys=True)
        result = store.result(experiment)
        assert result["state"] == "finished"
        found[experiment.id, "scores"] = (result["best"], result["last"], result.get("confidence"))
        assert not list(folder.glob("snapshot*")) and not list(folder.glob("*.tmp"))
    return found


def test_killed_at_random_moments(program, undisturbed, tmp_path):
    seed = time.time_ns()
    print(f"seed {seed}")
    rng = random.Random(seed)
    kills = 0
    while True:
        process = program(tmp_path, "alone" if kills else "workers")
        if kills < 4:
            process.stdout.readline()  # the first run has ended, with workers an epoch of it
            time.sleep(rng.uniform(0, 0.5))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
        if processes.finish(process, None).returncode == 0:
            break
    assert kills >= 1
    assert outcome(tmp_path) == undisturbed


def test_workers_end_with_the_process_that_hands_out_runs(program, tmp_path):
    process = program(tmp_path)
    process.stdout.readline()
    process.kill()  # it alone, as for want of memory
    process.wait()
    processes.wait_until(lambda: not processes.alive(process.pid))


def test_two_processes_share_the_work(program, undisturbed, tmp_path):
    both = [program(tmp_path, "alone"), program(tmp_path, "alone")]
    for line in "".join(processes.finish(process).stdout for process in both).splitlines():
        run_id, state, written = line.split()
        if state == "finished":
            result = tmp_path / "runs" / run_id / "result.json"
            assert int(written) == result.stat().st_mtime_ns  # by one of them, once
    assert outcome(tmp_path) == undisturbed


def test_paused_by_a_time_budget(undisturbed, tmp_path):
    """Every slice ends with its first epoch, the deadline being over when it starts."""
    store, pauses = RunStore(tmp_path), 0
    for experiment in with_first_steps(EXPERIMENTS):
        with store.lock(experiment):
            while store.result(experiment) is None:
                computation = Computation(deadline=time.monotonic(), snapshot_seconds=1e9)
                try:
                    Run(experiment, digits.load(), store, computation).finish()
                except Paused:
                    pauses += 1
    assert pauses > len(EXPERIMENTS)
    assert outcome(store.root) == undisturbed


def paused(store, experiment=EXPERIMENTS[1]):
    """The snapshot of a run after its first epoch."""
    with store.lock(experiment), pytest.raises(Paused):
        Run(experiment, digits.load(), store, Computation(deadline=0.0)).finish()
    return store.snapshot(experiment)


@pytest.fixture(scope="module")
def begun_once(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("begun"))
    paused(store, EXPERIMENTS[2])
    return store.root


@pytest.fixture
def begun(begun_once, tmp_path):
    """A store with a first step that was paused after its first epoch, and the snapshot."""
    store = RunStore(shutil.copytree(begun_once, tmp_path / "begun"))
    return store, store.snapshot(EXPERIMENTS[2])


def test_a_run_says_all_code_devices_and_versions_that_computed_it(tmp_path, monkeypatch):
    """However often this code pauses it, and whichever of the two ends it. Its seconds tell nothing
    of either device."""
    store, alone = RunStore(tmp_path / "mixed"), RunStore(tmp_path / "alone")
    version = provenance.metadata.version
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "device_name", lambda device: "another")
        paused(alone)
        patch.setattr(provenance, "sources_digest", lambda: "another")
        patch.setattr(provenance, "COMMIT", "c1")
        patch.setattr(provenance.metadata, "version", lambda name: f"{version(name)}.other")
        paused(store)
    assert other_code([finish(alone)]) == "", "another device is no other code"
    paused(store)
    mixed, found = finish(store), collect(store.root)
    assert "1 of 1" in other_code([mixed]) and "(commit c1)" in other_code([mixed])
    here = mixed["provenance"]["device"]
    assert found["sources"] == sorted([provenance.sources_digest(), "another"])
    assert "c1" in found["commits"] and found["devices"] == sorted([here, "another"])
    numpy = version("numpy")
    assert [each["numpy"] for each in found["versions"]] == [numpy, f"{numpy}.other"]
    assert Cost.of(store, [EXPERIMENTS[1]], here, guess=None).basis == UNKNOWN
    monkeypatch.setattr(provenance, "sources_digest", lambda: "another")
    assert "1 of 1" in other_code([mixed])


def test_a_second_step_does_not_go_on_with_other_labels(tmp_path):
    """As where its first step was done again elsewhere."""
    store, (second, first) = RunStore(tmp_path), (EXPERIMENTS[0], EXPERIMENTS[0].first_step)
    for experiment in (first, second):
        with contextlib.suppress(Paused), store.lock(experiment):
            late = Computation(deadline=0.0 if experiment is second else None)
            Run(experiment, digits.load(), store, late).finish()
    digest = store.save_labels(first, np.roll(store.soft_labels(first), 1, axis=1))
    store.save_result(first, store.result(first) | {"labels_sha256": digest})
    with (
        store.lock(second),
        pytest.raises(UserError, match="expected the same run, data and labels"),
    ):
        Run(second, digits.load(), store, Computation()).finish()


def test_a_run_does_not_go_on_from_the_snapshot_of_another(begun):
    """The other run has another learning rate, on the same data."""
    (store, path), run = begun, EXPERIMENTS[2]
    other = replace(run, optimization=replace(run.optimization, learning_rate=0.01))
    store.open(other)
    shutil.copy(path, store.snapshot(other))
    with pytest.raises(UserError, match=f"checkpoint of '{run.id}-.*expected the same run, data"):
        finish(store, other)


@pytest.mark.parametrize("part, value", [
    # As older versions wrote it: a GPU's velocity was in an order that it did not tell.
    ("codes", None), ("updater/optimizer:main/velocity_by_name", None),
    ("codes", "no JSON"), ("updater/iteration", [0.5, 1.5]), ("extensions/LogReport/_log", 3),
    ("codes", {}),  # pickled
    ("updater/labels/labels", [[1.0, 2.0]]), ("updater/model:main/predictor/conv/W", 1j),
    ("updater/model:main/predictor/conv/W", [1.0]),
])  # fmt: skip
def test_a_snapshot_without_a_part_or_with_another_array_is_refused(begun, part, value):
    store, path = begun
    arrays = files.arrays(path)
    assert arrays.pop(part) is not None
    np.savez(path, **arrays | ({} if value is None else {part: np.asarray(value)}))
    said = f".without '{part}', .*" if value is None else ".*"
    said = f"snapshot.npz: damaged {said}; remove this file, the run then starts again$"
    with pytest.raises(UserError, match=said):
        finish(store, EXPERIMENTS[2])


class Killed(Exception):
    pass


def killed(*args, **kwargs):
    raise Killed


def finish(store, experiment=EXPERIMENTS[1]):
    """Brings a run to its end with a snapshot after each epoch."""
    with store.lock(experiment):
        return Run(experiment, digits.load(), store, Computation(snapshot_seconds=0)).finish()


@pytest.mark.parametrize("moment", ["a snapshot is half written", "all epochs are done"])
def test_killed_at_the_worst_moment(tmp_path, monkeypatch, moment):
    """At its end, a run has its log, its scores and nothing else."""
    store, undisturbed = RunStore(tmp_path / "killed"), RunStore(tmp_path / "undisturbed")
    saves = iter([save_npz, save_npz])

    def save_half(file, target, compression):
        save = next(saves, None)
        if save is None:  # the third snapshot
            file.write(b"half of it")
            raise Killed
        save(file, target, compression)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        if moment == "all epochs are done":
            patch.setattr(RunStore, "save_result", killed)
        else:
            patch.setattr(serializers, "save_npz", save_half)
        finish(store)
    names = {path.name for path in store.folder(EXPERIMENTS[1]).iterdir()}
    assert "snapshot.npz" in names and "result.json" not in names
    # As a kill leaves it: Chainer's trainer has no time to write its log.
    (store.folder(EXPERIMENTS[1]) / "log.json").write_text("[]")
    result, expected = finish(store), finish(undisturbed)
    assert (result["best"], result["last"]) == (expected["best"], expected["last"])
    assert len(store.log(EXPERIMENTS[1])) == len(undisturbed.log(EXPERIMENTS[1]))
    kept = {path.name for path in undisturbed.folder(EXPERIMENTS[1]).iterdir()}
    assert {path.name for path in store.folder(EXPERIMENTS[1]).iterdir()} == kept


def test_of_a_log_without_its_snapshot_every_epoch_is_left(tmp_path):
    """As where somebody copied the one without the other: the run begins anew."""
    experiment, data = EXPERIMENTS[1], digits.load()
    store, paused = RunStore(tmp_path), Computation(snapshot_seconds=0, deadline=0)
    epochs = experiment.optimization.epochs
    assert store.epochs_left(experiment) == epochs
    assert worker.execute(experiment, store, data, paused) == ("paused", None)
    assert len(store.log(experiment)) == 1 and store.epochs_left(experiment) == epochs - 1
    worker.execute(experiment, store, data, paused)
    assert len(store.log(experiment)) == 2 and store.epochs_left(experiment) == epochs - 2
    store.snapshot(experiment).unlink()
    assert store.epochs_left(experiment) == epochs
    with store.lock(experiment):
        store.reset(experiment)
    assert store.log(experiment) == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_first_step_whose_labels_are_lost_is_done_again_epoch_by_epoch(packed, tmp_path):
    """Meanwhile its result and its log never contradict each other."""
    second, data = EXPERIMENTS[0], digits.load()
    run = second.first_step
    store, computation = RunStore(tmp_path), Computation(snapshot_seconds=0)
    _, result = worker.execute(run, store, data, computation)
    labels, log = store.soft_labels(run), store.log(run)
    if packed:  # by another machine, whose numbers are others
        entries = files.read_json(store.folder(run) / "log.json", list)
        others = [{**entry, "test": 0.123} for entry in entries]
        files.write_json(store.folder(run) / "log.json", others)
        digest = store.save_labels(run, labels[::-1])
        store.save_result(run, {**result, "labels_sha256": digest})
        pack(store, tmp_path)
        shutil.rmtree(store.folder(run))
        store.save_labels(run, labels)
        assert store.soft_labels(run) is None, "they are not those that the result is of"
    else:
        (store.folder(run) / "labels.npz").unlink()
    for _ in range(len(log) + 1):
        remove_temporaries([second], store)
        state, _ = worker.execute(run, store, data, replace(computation, deadline=0))
        assert store.result(run) is None or len(store.log(run)) == len(log)
        if state == "finished":
            break
        assert pending([second], store) == [run, second]
    assert state == "finished" and store.result(run)["last"] == result["last"]
    np.testing.assert_array_equal(store.soft_labels(run), labels)
