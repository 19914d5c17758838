"""`batch_norm_relu` and the first and last layers on every engine against float64 NumPy."""

import chainer
import numpy as np
import pytest
from engines import TOLERANCE, backend
from float64_functions import batch_norm_relu as batch_norm_relu64
from float64_functions import batch_norm_relu_gradients, relative_error

from chainer_jo.engine.functions import as_activation, batch_norm_relu, linear, spatial_mean

EPS = 2e-5
SHAPES = [(8, 32, 4, 4), (1, 1, 7, 5), (3, 5, 7, 5), (2, 16, 1, 1), (4, 17, 3, 2), (1, 48, 6, 6)]


@pytest.fixture(params=["stock", "fp32", "mixed"])
def engine(request):
    with chainer.using_config("jo_backend", backend(request.param)):
        yield request.param


def draw(shape, seed=0):
    """x, gamma, beta, gy. ReLU's kink is kept away from every value, so that no engine's rounding
    can move one across it: whether a unit is active is decided by beta's sign and size."""
    rng = np.random.default_rng(seed)
    n, c, h, w = shape
    # Values with small deviations around 0, sums of which are far from +-beta.
    x = rng.integers(-64, 65, shape) / 32
    gamma = rng.uniform(0.05, 0.15, c) * rng.choice([-1, 1], c)
    beta = rng.uniform(1.0, 2.0, c) * rng.choice([-1, 1, 1], c)
    gy = rng.integers(-64, 65, shape) / 32
    return [np.float32(a) for a in (x, gamma, beta, gy)]


def run(x, gamma, beta, gy, running):
    images, scale, shift = chainer.Variable(x), chainer.Parameter(gamma), chainer.Parameter(beta)
    y = batch_norm_relu(as_activation(images), scale, shift, *running)
    y.grad = gy.astype(y.dtype)
    y.backward()
    return y.array, images.grad, scale.grad, shift.grad


@pytest.mark.parametrize("shape", SHAPES)
def test_training(engine, shape):
    x, gamma, beta, gy = draw(shape)
    running = np.full(shape[1], 0.5, np.float32), np.full(shape[1], 2.0, np.float32)
    found = run(x, gamma, beta, gy, running)
    mean, var = np.float64(x).mean(axis=(0, 2, 3)), np.float64(x).var(axis=(0, 2, 3))
    samples = x.size // shape[1]
    tolerance = TOLERANCE[engine]
    assert relative_error(found[0], batch_norm_relu64(x, gamma, beta, mean, var, EPS)) < tolerance
    _, *expected = batch_norm_relu_gradients(x, gamma, beta, gy)
    size = np.linalg.norm(expected[2]) + np.linalg.norm(gamma[:, None] * gy.reshape(1, -1))
    for ours, theirs in zip(found[1:], expected, strict=True):
        assert np.linalg.norm(np.float64(ours) - theirs) < 2 * tolerance * max(
            np.linalg.norm(theirs), 0.01 * size
        )
    unbiased = var * samples / max(samples - 1, 1)
    assert relative_error(running[0], 0.9 * 0.5 + 0.1 * mean) < 1e-5
    assert relative_error(running[1], 0.9 * 2.0 + 0.1 * unbiased) < 1e-5


@pytest.mark.parametrize("shape", SHAPES[:4])
def test_fixed_statistics(engine, shape):
    x, gamma, beta, gy = draw(shape)
    mean = np.linspace(-0.5, 0.5, shape[1], dtype=np.float32)
    var = np.linspace(0.5, 2.0, shape[1], dtype=np.float32)
    running = mean.copy(), var.copy()
    with chainer.using_config("train", False):
        y = batch_norm_relu(as_activation(chainer.Variable(x)), gamma, beta, *running)
    expected = batch_norm_relu64(x, gamma, beta, mean, var, EPS)
    assert relative_error(y.array, expected) < TOLERANCE[engine]
    np.testing.assert_array_equal(running, (mean, var))


def test_no_gradient_in_test_mode():
    x, gamma, beta, gy = draw(SHAPES[0])
    running = np.zeros(32, np.float32), np.ones(32, np.float32)
    used = chainer.using_config("jo_backend", backend("fp32"))
    with used, chainer.using_config("train", False):
        y = batch_norm_relu(as_activation(chainer.Variable(x)), gamma, beta, *running)
    y.grad = gy
    with pytest.raises(RuntimeError, match="no gradient in test mode"):
        y.backward()


def test_gradient_that_is_there_is_added_to(engine):
    x, gamma, beta, gy = draw((8, 16, 4, 4))
    running = np.zeros(16, np.float32), np.ones(16, np.float32)
    _, gx, _, _ = run(x, gamma, beta, gy, running)
    images = chainer.Variable(x)
    h = as_activation(images)
    y = batch_norm_relu(h, gamma, beta, *running) + h + h
    y.grad = gy.astype(y.dtype)
    y.backward()
    assert relative_error(images.grad, gx + 2 * gy) < TOLERANCE[engine]


def test_gradients_of_shared_parameters_add_up(engine):
    x, gamma, beta, gy = draw((8, 16, 4, 4))
    once = run(x, gamma, beta, gy, (np.zeros(16, np.float32), np.ones(16, np.float32)))
    scale, shift = chainer.Parameter(gamma), chainer.Parameter(beta)
    images = [as_activation(chainer.Variable(a)) for a in (x, x[::-1].copy())]
    averages = np.zeros(16, np.float32), np.ones(16, np.float32)
    y = sum(batch_norm_relu(h, scale, shift, *averages) for h in images)
    y.grad = gy.astype(y.dtype)
    y.backward()
    other = run(x[::-1].copy(), gamma, beta, gy, averages)
    for found, one, two in zip((scale.grad, shift.grad), once[2:], other[2:], strict=True):
        assert relative_error(found, np.float64(one) + two) < TOLERANCE[engine]


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_wrong_arrays_are_refused(name):
    x, gamma, beta, _ = draw((2, 16, 4, 4))
    running = np.zeros(16, np.float32), np.ones(16, np.float32)
    with chainer.using_config("jo_backend", backend(name)):
        with pytest.raises(TypeError, match="activation: dtype float64"):
            batch_norm_relu(x.astype(np.float64), gamma, beta, *running)
        with pytest.raises(TypeError, match="gamma: dtype float64"):
            batch_norm_relu(as_activation(x), gamma.astype(np.float64), beta, *running)
        with pytest.raises(ValueError, match="beta: shape"):
            batch_norm_relu(as_activation(x), gamma, beta[:5], *running)


@pytest.mark.parametrize("shape", SHAPES)
def test_spatial_mean(engine, shape):
    x, _, _, _ = draw(shape)
    images = chainer.Variable(x)
    y = spatial_mean(as_activation(images))
    assert y.dtype == np.float32
    assert relative_error(y.array, np.float64(x).mean(axis=(2, 3))) < 1e-5
    y.grad = gy = np.random.default_rng(1).standard_normal(y.shape).astype(np.float32)
    y.backward()
    n, c, h, w = shape
    expected = np.broadcast_to(gy[:, :, None, None] / (h * w), shape)
    assert relative_error(images.grad, expected) < TOLERANCE[engine]


def test_linear(engine):
    rng = np.random.default_rng(2)
    x, W, b, gy = (np.float32(rng.standard_normal(s)) for s in ((6, 5), (3, 5), 3, (6, 3)))
    rows, weights, bias = chainer.Variable(x), chainer.Parameter(W), chainer.Parameter(b)
    y = linear(rows, weights, bias)
    y.grad = gy
    y.backward()
    expected = x @ np.float64(W).T + b, gy @ np.float64(W), gy.T @ np.float64(x), gy.sum(axis=0)
    for found, exact in zip((y.array, rows.grad, weights.grad, bias.grad), expected, strict=True):
        assert relative_error(found, exact) < 1e-6
