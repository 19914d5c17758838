"""oneDNN's backend: threads, and kernels that were wrong."""

from concurrent.futures import ThreadPoolExecutor

import chainer
import numpy as np
import pytest
from engines import backend
from float64_functions import relative_error
from threadpoolctl import threadpool_limits

from chainer_jo.engine.cpu import onednn
from chainer_jo.reproduction.running.provenance import computing


def test_number_of_threads():
    backend("fp32")
    x = np.random.RandomState(0).randn(4, 16, 8, 8).astype(np.float32)
    W = np.random.RandomState(1).randn(16, 16, 3, 3).astype(np.float32)
    results = {}
    for count in (1, 2, 3):
        with threadpool_limits(count):
            chosen = onednn.load("fp32")
            assert computing(chainer.get_device("@numpy"), chosen)["threads"] == count
            results[count] = chosen.conv2d(x, W, 1, 1, None)
    for result in results.values():
        assert relative_error(result, results[1]) < 1e-6


def test_calls_from_many_threads():
    """Different inputs of one shape share a primitive: none may see another's arrays."""
    chosen = backend("fp32")
    rng = np.random.RandomState(0)
    inputs = [rng.randn(2, 16, 8, 8).astype(np.float32) for _ in range(8)]
    W = rng.randn(16, 16, 3, 3).astype(np.float32)
    expected = [chosen.conv2d(x, W, 1, 1, x) for x in inputs]

    def is_right(x, y):
        return all(np.array_equal(chosen.conv2d(x, W, 1, 1, x), y) for _ in range(50))

    with ThreadPoolExecutor(len(inputs)) as pool:
        assert all(pool.map(is_right, inputs, expected))


def test_a_thread_runs_what_another_has_made():
    """Gradients of such weights take kernels that need memory besides; with AVX2 it was the
    thread's that had made them, and another one crashed."""
    chosen = backend("fp32")
    rng = np.random.RandomState(0)
    x, gy = rng.randn(64, 1, 2, 2).astype(np.float32), rng.randn(64, 8, 2, 2).astype(np.float32)
    call = chosen.conv2d_grad_weight, x, gy, (8, 1, 3, 3), 1, 1
    expected = chosen.conv2d_grad_weight(*call[1:])
    with ThreadPoolExecutor(1) as pool:
        np.testing.assert_array_equal(pool.submit(*call).result(), expected)


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_weights_that_meet_padding_alone_have_no_gradient(name):
    """With a stride, of images one pixel wide: the outer columns of the kernels."""
    chosen = backend(name)
    rng = np.random.RandomState(0)
    x, gy = rng.randn(8, 32, 1, 1).astype(np.float32), rng.randn(8, 32, 1, 1).astype(np.float32)
    x, gy = map(chosen.as_activation, (x, gy))
    for _ in range(3):
        gW = np.array(chosen.conv2d_grad_weight(x, gy, (32, 32, 3, 3), 2, 1))
        centre = gW[:, :, 1, 1].copy()
        gW[:, :, 1, 1] = 0
        assert not gW.any() and np.isfinite(centre).all() and centre.any()
