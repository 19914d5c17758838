"""The CUDA kernels of a training step, compiled for the CPU, against NumPy."""

import sys

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import array, needs_compiler

from chainer_jo.datasets import augmentation
from chainer_jo.functions.providers import cudnn_kernels
from chainer_jo.training.device import kernels
from chainer_jo.training.iterator import Batch
from chainer_jo.training.optimizers import FlatMomentumSGD

pytestmark = [needs_compiler, pytest.mark.usefixtures("arithmetic")]


@pytest.fixture(scope="module", autouse=True)
def on_cpu(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", cuda_on_cpu.cupy(tmp_path_factory.mktemp("cuda")))
        for cached in (kernels._module, cudnn_kernels._matmul):
            cached.cache_clear()
        yield
        for cached in (kernels._module, cudnn_kernels._matmul):
            cached.cache_clear()


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize(
    ("shape", "pad"), [((9, 32, 32, 3), 4), ((5, 7, 5, 1), 2), ((4, 6, 6, 2), 0)]
)
def test_network_input_is_the_augmentation_bit_for_bit(rng, shape, pad):
    images = rng.integers(256, size=shape, dtype=np.uint8)
    mean = rng.random(shape[1:], np.float32)
    indices = rng.integers(len(images), size=70)
    dy, dx, flips = augmentation.draw(rng, 70, pad, True)
    expected = augmentation.apply(images[indices], mean, dy, dx, flips, pad)
    result = kernels.network_input(images, mean, Batch(indices, dy, dx, flips), pad)
    assert result.dtype == np.float32 and np.array_equal(result, expected)


def test_network_input_without_augmentation(rng):
    images = rng.integers(256, size=(6, 5, 4, 3), dtype=np.uint8)
    mean = rng.random((5, 4, 3), np.float32)
    assert np.array_equal(kernels.network_input(images, mean), augmentation.normalise(images, mean))


def test_of_rows_for_the_same_image_the_last_one_counts(rng):
    ours = rng.random((20, 3), np.float32)
    theirs = ours.copy()
    indices = np.array([4, 7, 4, 0, 7, 4, 19])
    rows = rng.random((7, 3), np.float32)
    kernels.write_rows(ours, indices, rows)
    theirs[indices] = rows
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("count", [1, 5, kernels.CHUNKS, 2 * kernels.CHUNKS + 3])
def test_gather_takes_any_number_of_arrays(rng, count):
    sizes = rng.integers(1, 700, size=count)
    arrays = [array(rng.random(size, np.float32)) for size in sizes]
    out = array(np.full(sizes.sum(), np.nan, np.float32))
    kernels.gather(arrays, out, 1 / 1024)
    assert np.array_equal(out, np.concatenate(arrays) / np.float32(1024))


def test_chunks_fit_into_a_kernels_arguments():
    assert kernels.CHUNKS_DTYPE.itemsize == 8 * (2 * kernels.CHUNKS + 1) <= 4096 - 64


def test_momentum_sgd_is_the_optimizers_bit_for_bit(rng):
    size = 1000
    start = [array(rng.standard_normal(size), np.float32) for _ in range(3)]
    ours = [a.copy() for a in start]
    lr = np.array([0.1], np.float32)
    kernels.momentum_sgd(*ours, lr, 0.9, 1e-4)

    optimizer = FlatMomentumSGD(0.1, 0.9, 1e-4)
    optimizer.parameters, optimizer.velocity, optimizer.gradients = (np.array(a) for a in start)
    optimizer._scratch = np.empty(size, np.float32)
    optimizer._device_lr, optimizer._sent_lr = np.empty(1, np.float32), None
    optimizer.step()
    assert np.array_equal(ours[0], optimizer.parameters)
    assert np.array_equal(ours[1], optimizer.velocity)
    assert np.array_equal(ours[2], start[2])


@pytest.mark.parametrize(("m", "k", "n"), [(128, 10, 128), (1, 1, 1), (10, 128, 7)])
def test_matmul_of_arrays_and_transposed_ones(rng, m, k, n):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    matmul = cudnn_kernels.Kernels.matmul
    for left in (array(a, np.float32), array(a.T, np.float32).T):
        for right in (array(b, np.float32), array(b.T, np.float32).T):
            assert np.allclose(matmul(left, right), a @ b, atol=1e-4)
