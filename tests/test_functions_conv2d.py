"""`conv2d` on every engine against float64 NumPy."""

import chainer
import numpy as np
import pytest
from engines import TOLERANCE, backend
from float64_functions import conv2d as conv2d64
from float64_functions import conv2d_gradients, relative_error

from chainer_jo.engine.cpu import onednn
from chainer_jo.engine.functions import as_activation, conv2d

# n, c, h, w, out channels, kernel, stride, pad
SHAPES = [
    (2, 32, 8, 8, 32, 3, 1, 1),
    (1, 3, 7, 5, 16, 3, 1, 1),
    (1, 1, 1, 1, 1, 1, 1, 0),
    (2, 1, 7, 5, 3, 3, 2, 1),
    (3, 17, 5, 7, 5, 3, 1, 0),
    (2, 16, 8, 8, 32, 1, 2, 0),
    (2, 16, 7, 7, 16, 3, 2, 1),
    (2, 5, 4, 4, 7, 1, 1, 0),
    (2, 21, 5, 6, 17, 1, 1, 0),
]


@pytest.fixture(params=["stock", "fp32", "mixed"])
def engine(request):
    with chainer.using_config("jo_backend", backend(request.param)):
        yield request.param


def draw(shape, seed=0):
    """x, W, residual and gy as numbers that bfloat16 has, so that only the computation can err."""
    n, c, h, w, o, k, stride, pad = shape
    rng = np.random.default_rng(seed)
    y_shape = conv2d64(np.zeros((n, c, h, w)), np.zeros((o, c, k, k)), stride, pad).shape
    shapes = ((n, c, h, w), (o, c, k, k), y_shape, y_shape)
    return [np.float32(rng.integers(-64, 65, s) / 32) for s in shapes]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_residual", [False, True])
def test_values_and_gradients(engine, shape, with_residual):
    x, W, residual, gy = draw(shape)
    stride, pad = shape[-2:]
    images, weights, shortcut = (
        chainer.Variable(x),
        chainer.Parameter(W),
        chainer.Variable(residual),
    )
    h = as_activation(images)
    added = as_activation(shortcut) if with_residual else None
    y = conv2d(h, weights, stride, pad, added)
    y.grad = gy.astype(y.dtype)
    y.backward()
    expected = conv2d64(x, W, stride, pad) + with_residual * residual
    gx, gW = conv2d_gradients(x, W, gy, stride, pad)
    tolerance = TOLERANCE[engine]
    assert y.shape == expected.shape
    assert engine == "stock" or y.array.transpose(0, 2, 3, 1).flags.c_contiguous
    assert relative_error(y.array, expected) < tolerance
    assert relative_error(images.grad, gx) < tolerance
    assert weights.grad.dtype == np.float32 and weights.grad.flags.c_contiguous
    assert relative_error(weights.grad, gW) < tolerance
    if with_residual:
        assert relative_error(shortcut.grad, gy) < tolerance


def test_gradients_of_shared_inputs_add_up(engine):
    """x goes into two convolutions and is a residual, W is used twice; nothing is lost."""
    x, W, _, _ = draw((2, 16, 6, 6, 16, 3, 1, 1))
    images, weights = chainer.Variable(x), chainer.Parameter(W / 16)
    h = as_activation(images)
    y = conv2d(h, weights, 1, 1, residual=h)
    z = conv2d(h, weights, 1, 1, residual=y)
    z.grad = np.ones(z.shape, z.dtype)
    z.backward()
    ones = np.ones(z.shape)
    gx, gW = conv2d_gradients(x, W / 16, ones, 1, 1)
    assert relative_error(images.grad, 2 * gx + ones) < TOLERANCE[engine]
    assert relative_error(weights.grad, 2 * gW) < TOLERANCE[engine]


def test_gradient_given_by_the_user_is_not_written_to(engine):
    x, W, residual, gy = draw((2, 16, 6, 6, 16, 3, 1, 1))
    h = as_activation(chainer.Variable(x))
    y = conv2d(h, chainer.Parameter(W), 1, 1, residual=h)
    y.grad = gy = gy.astype(y.dtype)
    before = gy.copy()
    y.backward(retain_grad=True)
    np.testing.assert_array_equal(gy, before)
    np.testing.assert_array_equal(y.grad, before)


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_memory_of_any_layout_is_accepted(name):
    x, W, _, _ = draw((4, 16, 6, 6, 16, 3, 1, 1))
    with chainer.using_config("jo_backend", backend(name)):
        dtype = as_activation(x).dtype
        expected = conv2d(as_activation(x), W, 1, 1).array
        wide = np.zeros((4, 16, 6, 12), dtype)
        wide[..., ::2] = x
        for layout in (x.astype(dtype), np.asfortranarray(x.astype(dtype)), wide[..., ::2]):
            np.testing.assert_array_equal(conv2d(layout, W, 1, 1).array, expected)
        flipped = np.ascontiguousarray(W[::-1])[::-1]
        np.testing.assert_array_equal(conv2d(as_activation(x), flipped, 1, 1).array, expected)


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_wrong_arrays_are_refused(name):
    x, W, _, _ = draw((2, 16, 6, 6, 16, 3, 1, 1))
    with chainer.using_config("jo_backend", backend(name)):
        h = as_activation(x).array
        with pytest.raises(TypeError, match="activation: dtype float64"):
            conv2d(x.astype(np.float64), W, 1, 1)
        with pytest.raises(TypeError, match="W: dtype float64"):
            conv2d(h, W.astype(np.float64), 1, 1)
        with pytest.raises(TypeError, match="activation: dtype uint8"):
            as_activation(x.astype(np.uint8))
        with pytest.raises(ValueError, match="convolution of x"):
            conv2d(h, W[:, :5], 1, 1)
        with pytest.raises(ValueError, match="convolution of x"):
            conv2d(h[:, :, :2, :2], W, 1, 0)
        with pytest.raises(ValueError, match="activation: shape"):
            conv2d(h, W, 2, 1, residual=h)


def test_nothing_is_kept_without_backprop():
    x, W, _, _ = draw((2, 16, 6, 6, 16, 3, 1, 1))
    backend("fp32")
    chosen = onednn.load("fp32")
    with chainer.using_config("jo_backend", chosen), chainer.no_backprop_mode():
        h = as_activation(x)
        for _ in range(3):
            h = conv2d(h, W, 1, 1)
    # as_activation's copy is h; besides it two results at a time, and weights in the plan's layout.
    assert chosen.buffers.allocated <= 3 * h.array.nbytes + 2 * W.nbytes
