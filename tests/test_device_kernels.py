"""The CUDA kernels of a training step, compiled for the CPU and on a GPU, against NumPy."""

import sys
from functools import partial

import chainer
import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import needs_compiler
from engines import ON_GPU

from chainer_jo.engine.cuda import cuda_source, cudnn_kernels, joint_loss_kernel, kernels
from chainer_jo.engine.interface import EPS, Backend
from chainer_jo.method import augmentation
from chainer_jo.method.iterator import Batch
from chainer_jo.method.losses import JointLoss
from chainer_jo.method.optimizers import FlatMomentumSGD

pytestmark = pytest.mark.usefixtures("arithmetic")
DEVICES = [pytest.param("cpu", marks=needs_compiler), pytest.param("gpu", marks=ON_GPU)]


@pytest.fixture(scope="module", params=DEVICES)
def array(request, tmp_path_factory):
    """Function that makes a contiguous array of the device."""
    if request.param == "gpu":
        yield partial(chainer.backends.cuda.cupy.array, order="C")
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", cuda_on_cpu.cupy(tmp_path_factory.mktemp("cuda")))
        cuda_source.module.cache_clear()
        yield cuda_on_cpu.array
    cuda_source.module.cache_clear()


def host(a):
    return chainer.backend.CpuDevice().send(a)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize(
    ("shape", "pad"), [((9, 32, 32, 3), 4), ((5, 7, 5, 1), 2), ((4, 6, 6, 2), 0)]
)
def test_network_input_is_the_augmentation_bit_for_bit(array, rng, shape, pad):
    images = rng.integers(256, size=shape, dtype=np.uint8)
    mean = rng.random(shape[1:], np.float32)
    indices = rng.integers(len(images), size=70)
    draws = augmentation.draw(rng, 70, pad, True)
    expected = augmentation.apply(images[indices], mean, *draws, pad)
    batch = Batch(*map(array, (indices, *draws)))
    result = kernels.network_input(array(images), array(mean), batch, pad)
    assert result.dtype == np.float32 and np.array_equal(host(result), expected)
    plain = kernels.network_input(array(images), array(mean))
    assert np.array_equal(host(plain), augmentation.normalise(images, mean))


def test_of_rows_for_the_same_image_the_last_one_counts(array, rng):
    theirs = rng.random((20, 3), np.float32)
    ours = array(theirs.copy())
    indices = np.array([4, 7, 4, 0, 7, 4, 19])
    rows = rng.random((7, 3), np.float32)
    kernels.write_rows(ours, array(indices), array(rows))
    theirs[indices] = rows
    assert np.array_equal(host(ours), theirs)


@pytest.mark.parametrize("count", [1, 5, kernels.CHUNKS, 2 * kernels.CHUNKS + 3])
def test_gather_takes_any_number_of_arrays(array, rng, count):
    sizes = rng.integers(1, 700, size=count)
    arrays = [rng.random(size, np.float32) for size in sizes]
    out = array(np.full(sizes.sum(), np.nan, np.float32))
    kernels.gather(list(map(array, arrays)), out, 1 / 1024)
    assert np.array_equal(host(out), np.concatenate(arrays) / np.float32(1024))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(5, 4, 3, 3), (7, 1, 3, 3), (8, 6, 1, 1), (1, 3, 5, 1)])
def test_gather_takes_what_cudnn_writes(array, rng, shape, dtype):
    """Gradients with channels-last memory among others; float16 down to its smallest numbers."""
    arrays = [array(rng.standard_normal(size), np.float32) for size in (3, 40)]
    gradient = rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 5, shape)
    arrays.insert(1, array(gradient.transpose(0, 2, 3, 1), dtype).transpose(0, 3, 1, 2))
    out = array(np.full(sum(a.size for a in arrays), np.nan, np.float32))
    kernels.gather(arrays, out, 1 / 1024)
    gathered = np.concatenate([host(a).astype(np.float32).ravel() for a in arrays])
    assert np.array_equal(host(out), gathered / np.float32(1024))


def test_gather_refuses_other_memory(array, rng):
    odd = array(rng.random((4, 4, 3, 6), np.float32))[:, :, :, ::2]
    with pytest.raises(ValueError, match="no channels-last memory"):
        kernels.gather([odd], array(np.empty(odd.size, np.float32)), 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("count", [1, cudnn_kernels.WEIGHTS, cudnn_kernels.WEIGHTS + 2])
def test_weights_are_arranged_as_numpy_would(array, rng, count, dtype):
    shapes = [(int(o), int(c), int(k), int(k)) for o, c, k in
              zip(rng.integers(1, 9, count), rng.integers(1, 9, count), rng.integers(1, 4, count),
                  strict=True)]  # fmt: skip
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    arranged = cudnn_kernels.arrange(list(map(array, weights)), np.dtype(dtype))
    for copy, w in zip(arranged, weights, strict=True):
        assert copy.dtype == dtype and copy.transpose(0, 2, 3, 1).flags.c_contiguous
        assert np.array_equal(host(copy), w.astype(dtype))


@pytest.mark.parametrize("layers", [1, cudnn_kernels.LAYERS + 3])
def test_averages_of_all_layers_move_as_a_backends_do(array, rng, layers):
    moved, expected = [], []
    for i in range(layers):
        c, samples = 1 + i % 7, 2 + i
        mean, var = rng.standard_normal(c).astype(np.float32), rng.random(c, np.float32) + 0.01
        running = rng.standard_normal(c).astype(np.float32), rng.random(c, np.float32)
        theirs = [a.copy() for a in running]
        Backend.move_averages(None, *theirs, mean, var, samples)
        expected.append(theirs)
        inverse = 1 / np.sqrt(var + np.float32(EPS))
        arrays = map(array, (*running, mean, inverse))
        moved.append(cudnn_kernels.Moved(*arrays, samples / (samples - 1)))
    cudnn_kernels.move_averages(moved)
    for ours, theirs in zip(moved, expected, strict=True):
        np.testing.assert_allclose(host(ours.running_mean), theirs[0], rtol=2e-6, atol=1e-7)
        np.testing.assert_allclose(host(ours.running_var), theirs[1], rtol=2e-5)


@pytest.mark.parametrize("n, c", [(128, 10), (1, 3), (300, 14), (5, 1)])
@pytest.mark.parametrize("alpha, beta, labelled", [
    (1.2, 0.8, True), (0.0, 0.0, True), (0.0, 0.4, True), (2.0, 0.0, True), (1.0, 1.0, False),
])  # fmt: skip
def test_the_joint_loss_is_that_of_array_operations(array, rng, n, c, alpha, beta, labelled):
    """Labels of 0 and 1 among others, and logits of which some probabilities underflow."""
    logits = (rng.standard_normal((n, c)) * rng.choice([1, 40], (n, 1))).astype(np.float32)
    labels = rng.dirichlet(np.ones(c), n).astype(np.float32)
    labels[::2] = np.eye(c, dtype=np.float32)[rng.integers(c, size=len(labels[::2]))]
    labels = labels if labelled else None
    prior = rng.dirichlet(5 * np.ones(c)).astype(np.float32)
    z = chainer.Variable(logits)
    loss = JointLoss(labels, prior, alpha, beta)
    with np.errstate(divide="ignore", invalid="ignore"):  # of one image alone, by eq. 10
        (value,) = loss.apply((z,))
        value.backward()
    operands = (None if a is None else array(a) for a in (logits, labels, prior))
    ours = joint_loss_kernel.Result(
        *map(host, joint_loss_kernel.joint_loss(*operands, alpha, beta))
    )
    np.testing.assert_allclose(ours.probabilities, loss.probabilities, rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(ours.gradient, z.grad, rtol=2e-4, atol=2e-6 / n)
    terms = dict(zip(joint_loss_kernel.TERMS, ours.terms, strict=True))
    for name, theirs in {"loss": value.array, **loss.terms}.items():
        assert terms[name] == pytest.approx(float(theirs), rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("table, arrays, entries", [
    (kernels.CHUNKS_DTYPE, 2, kernels.CHUNKS),
    (cudnn_kernels.WEIGHTS_DTYPE, 3, cudnn_kernels.WEIGHTS),
    (cudnn_kernels.LAYERS_DTYPE, 5, cudnn_kernels.LAYERS),
])  # fmt: skip
def test_tables_fit_into_a_kernels_arguments(table, arrays, entries):
    """Pointers, a count, and 9, 8 and 4 bytes an entry."""
    rest = {2: 9, 3: 8, 5: 4}[arrays] * entries
    assert table.itemsize == 8 * (arrays * entries + 1) + rest <= 4096 - 64
    assert table.itemsize % 8 == 0


def test_momentum_sgd_is_the_optimizers_bit_for_bit(array, rng):
    size = 1000
    start = [rng.standard_normal(size).astype(np.float32) for _ in range(3)]
    ours = [array(a.copy()) for a in start]
    kernels.momentum_sgd(*ours, array(np.array([0.1], np.float32)), 0.9, 1e-4)
    optimizer = FlatMomentumSGD(0.1, 0.9, 1e-4)
    optimizer.parameters, optimizer.velocity, optimizer.gradients = (np.array(a) for a in start)
    optimizer._scratch = np.empty(size, np.float32)
    optimizer._device_lr, optimizer._sent_lr = np.empty(1, np.float32), None
    optimizer.step()
    expected = optimizer.parameters, optimizer.velocity, start[2]
    assert all(map(np.array_equal, map(host, ours), expected))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_launch_finds_what_is_not_finite(array, rng, monkeypatch, value):
    launches, launch = [], kernels._launch
    monkeypatch.setattr(kernels, "_launch", lambda *a: (launches.append(a[0]), launch(*a)))
    a = rng.standard_normal(1000).astype(np.float32)
    a[:2] = np.finfo(np.float32).max, 1e-42
    assert kernels.all_finite(array(a))
    for place in (0, 999):
        wrong = a.copy()
        wrong[place] = value
        assert not kernels.all_finite(array(wrong))
    assert launches == ["find_not_finite"] * 3


@pytest.mark.parametrize(("m", "k", "n"), [(128, 10, 128), (1, 1, 1), (10, 128, 7)])
def test_matmul_of_arrays_and_transposed_ones(array, rng, m, k, n):
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    for left in (array(a, np.float32), array(a.T, np.float32).T):
        for right in (array(b, np.float32), array(b.T, np.float32).T):
            assert np.allclose(host(cudnn_kernels.matmul(left, right)), a @ b, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_batch_norm_with_fixed_statistics_keeps_nan(array, rng, dtype):
    x = rng.standard_normal((5, 2, 3, 7)).astype(dtype)
    x[0, 0, 0, 0] = np.nan
    gamma, beta, mean, var = np.float32(rng.standard_normal((4, 7)))
    found = cudnn_kernels.fixed_batch_norm_relu(*map(array, (x, gamma, beta, mean, var * var)))
    expected = np.maximum(gamma * (np.float32(x) - mean) / np.sqrt(var * var + EPS) + beta, 0)
    assert found.dtype == dtype
    tolerance = 1e-6 if dtype == np.float32 else 1e-3
    np.testing.assert_allclose(np.float32(host(found)), expected, tolerance, 1e-6)


def test_the_work_that_occupies_a_gpu_is_one_threads(array):
    x = array(np.zeros(1, np.float32))
    cudnn_kernels.occupy(x, 9)
    assert host(x)[0] == 2 - 2**-8
