"""Training on several ranks is training on one: the same losses, labels, checkpoints."""

import json
import re
import sys
from types import SimpleNamespace

import chainer
import chainer.links as L
import numpy as np
import pytest
from clothing1m_like import make_clothing1m_like
from processes import HERE, ROOT, environment, needs_mpi, run, run_on_ranks
from ranks_job import IN_MEMORY, ON_DISK

from chainer_jo.experiments.store import RunStore
from chainer_jo.training.many_ranks import ChainerMNRanks


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_clothing1m_like(tmp_path_factory.mktemp("data") / "clothing1m", train=5, size=20)


def job(data, results, *flags, ranks=1, code=0):
    """Runs ranks_job.py to its end; gives the finished process."""
    results.mkdir(exist_ok=True)
    command = [sys.executable, HERE / "ranks_job.py", data, results, *flags]
    if ranks == 1:
        return run(command, code)
    return run_on_ranks(ranks, command, code)


def losses(results):
    """Step -> (epoch's sum of losses so far, sum of absolute weights); the latest try counts."""
    lines = map(json.loads, (results / "losses.jsonl").read_text().splitlines())
    return {step: values for step, *values in lines}


def outcome(results, experiment=ON_DISK):
    store = RunStore(results)
    return store.result(experiment), store.labels(experiment), store.log(experiment)


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """One process that works through two shards."""
    results = tmp_path_factory.mktemp("alone")
    job(data, results, "--shards", "2")
    return results


@needs_mpi
def test_two_ranks_are_as_one_with_two_shards(data, alone, tmp_path):
    job(data, tmp_path, ranks=2)
    one, two = losses(alone), losses(tmp_path)
    assert list(one) == list(two) and len(one) == 27  # 3 epochs of 70 images in batches of 8
    for step in range(1, 21):
        (loss1, weights1), (loss2, weights2) = one[step], two[step]
        assert weights2 == pytest.approx(weights1, rel=1e-5)
        if step % 9:  # at the end of an epoch the sum begins anew
            assert loss2 == pytest.approx(loss1, rel=1e-5)
        else:
            assert loss1 is None
    (result1, labels1, log1), (result2, labels2, log2) = outcome(alone), outcome(tmp_path)
    assert result1["ranks"] == 1 and result2["ranks"] == 2
    assert labels1.shape == labels2.shape == (70, 14)
    np.testing.assert_allclose(labels1, labels2, atol=1e-4)
    np.testing.assert_allclose(labels2.sum(axis=1), 1, atol=1e-5)
    for before, after in zip(log1, log2, strict=True):
        assert before["loss"] == pytest.approx(after["loss"], rel=1e-4)
        assert before["accuracy/true"] == pytest.approx(after["accuracy/true"], abs=0.03)


@needs_mpi
def test_images_in_memory_on_two_ranks_are_as_on_one_with_two_shards(tmp_path):
    job("digits", tmp_path / "one", "--shards", "2")
    job("digits", tmp_path / "two", ranks=2)
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert list(one) == list(two)
    for step in range(1, 11):
        numbers = [[loss or 0.0, weights] for loss, weights in (one[step], two[step])]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)
    (result1, labels1, log1), (result2, labels2, log2) = (
        outcome(tmp_path / name, IN_MEMORY) for name in ("one", "two")
    )
    assert (result1["ranks"], result2["ranks"]) == (1, 2)
    assert result1["shards"] == result2["shards"] == 2
    np.testing.assert_allclose(labels1, labels2, atol=1e-2)
    assert len(log1) == len(log2) == IN_MEMORY.optimization.epochs
    recovery1, recovery2 = (r["last"]["recovery_by_class"] for r in (result1, result2))
    assert recovery2 == pytest.approx(recovery1, abs=0.1)
    for result in (result1, result2):  # as many test images of each class
        assert np.mean(result["last"]["test_by_class"]) == pytest.approx(result["last"]["test"])
    counts = [sum(row["number"] for row in r["confidence"]) for r in (result1, result2)]
    assert counts == [len(labels1)] * 2


@needs_mpi
def test_killed_on_two_ranks_and_continued_on_one(data, alone, tmp_path):
    killed = job(data, tmp_path, "--die-at", "16", "--die-rank", "1", ranks=2, code=None)
    assert killed.returncode != 0
    assert "signal 9" in killed.stderr + killed.stdout, "mpiexec says which rank died and how"
    assert max(losses(tmp_path)) <= 16
    job(data, tmp_path)  # one rank takes over both shards
    one, continued = losses(alone), losses(tmp_path)
    assert list(continued) == list(one)
    for step, values in one.items():
        np.testing.assert_allclose(continued[step][1], values[1], rtol=1e-5, err_msg=str(step))
    np.testing.assert_allclose(outcome(tmp_path)[1], outcome(alone)[1], atol=1e-4)
    assert outcome(tmp_path)[0]["shards"] == 2


@needs_mpi
def test_an_exception_on_one_rank_ends_all(data, tmp_path):
    failed = job(data, tmp_path, "--raise-at", "3", ranks=2, code=None)
    assert failed.returncode != 0
    assert "made to fail" in failed.stderr
    assert "Uncaught exception on rank 1" in failed.stderr


def test_killed_alone_and_continued_within_an_epoch(data, alone, tmp_path):
    job(data, tmp_path, "--shards", "2", "--die-at", "17", code=-9)
    job(data, tmp_path)
    assert losses(tmp_path) == losses(alone), "bit by bit"
    (result, labels, log), (result1, labels1, log1) = outcome(tmp_path), outcome(alone)
    np.testing.assert_array_equal(labels, labels1)
    for entry, entry1 in zip(log, log1, strict=True):
        assert entry | {"elapsed_time": 0} == entry1 | {"elapsed_time": 0}
    assert result["best"] == result1["best"] and result["last"] == result1["last"]


@needs_mpi
def test_continued_with_shards_that_do_not_divide(data, tmp_path):
    job(data, tmp_path, "--die-at", "16", code=-9)  # one shard
    job(data, tmp_path, ranks=2)
    result, labels, log = outcome(tmp_path)
    assert result["shards"] == 2 and len(log) == 3
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-5)


def test_recovery_is_that_of_the_labels(data, alone):
    result, labels, log = outcome(alone)
    noisy = dict(line.split() for line in (data / "clean_label_kv.txt").open())
    keys = (data / "noisy_train_key_list.txt").read_text().split()
    truth = np.array([int(noisy[key]) for key in keys])
    assert log[-1]["recovery"] == pytest.approx(np.mean(labels.argmax(axis=1) == truth))
    assert result["last"]["recovery"] == log[-1]["recovery"]


def test_running_averages_are_averaged_as_gradients_are():
    """On GPUs by NCCL: Open MPI as it comes as a wheel reads no memory of theirs."""

    class Communicator(SimpleNamespace):
        def multi_node_mean_grad(self, model):
            for param in model.params():
                param.grad /= 2

    link = chainer.Sequential(L.BatchNormalization(3), L.BatchNormalization(2))
    for number, each in enumerate(link, 1):
        each.avg_mean[...], each.avg_var[...] = number, 10 * number
    ranks = ChainerMNRanks(Communicator(mpi_comm=None, rank=0, size=2, intra_rank=0))
    ranks.average_statistics(link)
    assert [each.avg_mean.tolist() for each in link] == [[0.5] * 3, [1.0] * 2]
    assert [each.avg_var.tolist() for each in link] == [[5.0] * 3, [10.0] * 2]


@needs_mpi
def test_mpiexec_of_another_mpi_is_said(tmp_path):
    """Each process would take itself for the only one."""
    words = "--preset", "digits", "--device", "cpu", "--dry-run"
    command = [sys.executable, ROOT / "reproduce" / "figure2.py", *words]
    done = run(command, 2, env=environment(PMI_SIZE=2), cwd=tmp_path)
    line = "error: started by mpiexec, but alone with .*: mpiexec is of another MPI, .*\n"
    assert re.fullmatch(line, done.stderr)
