"""What the GPU benchmark computes without a GPU."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def engines():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import engines_cuda

        yield engines_cuda
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_work_is_counted_convolution_by_convolution(engines):
    """One stage of one unit on 4x4 images: conv 3>2, unit 2>2 with its projection."""
    flop, elements = engines.work((1,), (2,), (4, 4, 3), 5)
    pixels = 5 * 4 * 4
    first = 2 * (2 * pixels * 2 * 3 * 9)  # no gradient with respect to the images
    rest = 3 * (2 * pixels * 2 * 2 * (1 + 9 + 9))
    assert flop == first + rest
    assert elements == 2 * pixels * (3 + 2) + 3 * 3 * pixels * (2 + 2) + 3 * 5 * pixels * 2


def test_the_papers_network_has_the_work_that_its_table_says(engines):
    flop, _ = engines.work((5, 5, 5), (32, 64, 128), (32, 32, 3), 128)
    assert flop * 45_000 / 128 == pytest.approx(75e12, rel=0.01)


def test_rates_follow_from_times(engines):
    entry = {"name": "chainer_jo/mixed-graph", "median_s": 0.002}
    peaks = {"fp32": 5e13, "tf32": 4e14, "fp16": 8e14, "copy": 3e12}
    result = {"network": "paper", "batch": 128, "entries": [entry], "peaks": peaks}
    lines = engines.annotate(result)
    assert entry["images_per_s"] == 64_000
    assert entry["seconds_per_epoch"] == pytest.approx(0.703125)
    flop, elements = engines.work((5, 5, 5), (32, 64, 128), (32, 32, 3), 128)
    assert entry["of_matrix_rate"] == pytest.approx(flop / 0.002 / 8e14)
    assert entry["of_copy_rate"] == pytest.approx(2 * elements / 0.002 / 3e12)
    assert "64000" in lines[1] and "0.703" in lines[1]


def test_every_goal_compares_engines_that_there_are(engines):
    for _, ours, others, _ in engines.GOALS:
        assert ours in engines.ENTRIES and others and set(others) <= set(engines.ENTRIES)


def test_an_epoch_is_as_long_as_cifar10s(engines):
    import workload

    data = engines.tiled(workload.load("digits"))
    assert len(data.images) == len(data.labels) >= engines.EPOCH
    assert np.array_equal(data.images[:640], data.images[640:1280])


def test_without_a_gpu_it_says_so_in_one_line():
    pytest.importorskip("chainer")
    command = [sys.executable, ROOT / "benchmarks" / "train_step.py", "--device", "cuda"]
    environment = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1 and "--device cuda: no CUDA GPU" in run.stderr
