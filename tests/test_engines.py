"""The engine's functions on every engine against float64 NumPy."""

import chainer
import chainer.functions as F
import numpy as np
import pytest
from engines import ENGINES, Engine, backend, cases, engines
from float64_functions import batch_norm_relu as batch_norm_relu64
from float64_functions import batch_norm_relu_gradients, conv2d_gradients, relative_error
from float64_functions import conv2d as conv2d64

from chainer_jo.engine.cpu import onednn
from chainer_jo.engine.functions import as_activation, batch_norm_relu, conv2d, linear, spatial_mean
from chainer_jo.engine.interface import EPS
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.relabel.estimate.features import FeatureNetwork

# n, c, h, w, out channels, kernel, stride, pad
CONVOLUTIONS = [
    (2, 32, 8, 8, 32, 3, 1, 1),
    (1, 3, 7, 5, 16, 3, 1, 1),
    (1, 1, 1, 1, 1, 1, 1, 0),
    (2, 1, 7, 5, 3, 3, 2, 1),
    (3, 17, 5, 7, 5, 3, 1, 0),
    (2, 16, 8, 8, 32, 1, 2, 0),
    (2, 16, 7, 7, 16, 3, 2, 1),
    (2, 5, 4, 4, 7, 1, 1, 0),
    (2, 21, 5, 6, 17, 1, 1, 0),
    (1, 3, 5, 5, 1, 5, 1, 0),
]
GPU_CONVOLUTIONS = [
    (2, 8, 7, 5, 16, 3, 1, 1),
    (1, 1, 7, 5, 3, 3, 2, 1),
    (2, 3, 32, 32, 32, 3, 1, 1),
    (8, 32, 32, 32, 64, 3, 2, 1),
    (8, 32, 32, 32, 64, 1, 2, 0),
    (8, 128, 8, 8, 128, 3, 1, 1),
]
ACTIVATIONS = [
    (8, 32, 4, 4), (1, 1, 7, 5), (3, 5, 7, 5), (2, 16, 1, 1), (4, 17, 3, 2), (1, 48, 6, 6)
]  # fmt: skip
GPU_ACTIVATIONS = [(8, 32, 32, 32), (8, 128, 8, 8), (2, 3, 7, 5), (1, 1, 7, 5)]

on_convolutions = pytest.mark.parametrize(
    ("engine", "shape"), cases(CONVOLUTIONS, GPU_CONVOLUTIONS), indirect=["engine"]
)
on_activations = pytest.mark.parametrize(
    ("engine", "shape"), cases(ACTIVATIONS, GPU_ACTIVATIONS), indirect=["engine"]
)


@pytest.fixture(params=engines())
def engine(request):
    made = ENGINES[request.param]()
    with chainer.using_config("jo_backend", made.backend):
        yield made


on_host = pytest.mark.parametrize("engine", [
    "onednn-fp32", "onednn-mixed", "stand-in-fp32", "stand-in-mixed",
], indirect=True)  # fmt: skip


def host(array):
    return chainer.backend.CpuDevice().send(array)


def is_channels_last(x):
    return x.transpose(0, 2, 3, 1).flags.c_contiguous


def draw_convolution(shape):
    """x, W, residual and gy as numbers that bfloat16 has, so that only the computation can err."""
    n, c, h, w, o, k, stride, pad = shape
    rng = np.random.default_rng(0)
    y_shape = conv2d64(np.zeros((n, c, h, w)), np.zeros((o, c, k, k)), stride, pad).shape
    shapes = ((n, c, h, w), (o, c, k, k), y_shape, y_shape)
    return [np.float32(rng.integers(-64, 65, s) / 32) for s in shapes]


@on_convolutions
def test_convolution_and_gradients(engine, shape):
    x, W, residual, gy = draw_convolution(shape)
    *_, stride, pad = shape
    expected = conv2d64(x, W, stride, pad)
    gradients = conv2d_gradients(x, W, gy, stride, pad)
    sent = engine.send(x, W, residual, gy)
    for with_residual in (False, True):
        images, weights, shortcut = map(chainer.Variable, sent[:3])
        h = as_activation(images)
        y = conv2d(h, weights, stride, pad, as_activation(shortcut) if with_residual else None)
        y.grad = sent[3].astype(y.dtype)
        y.backward(retain_grad=True)
        found = [host(a) for a in (y.array, images.grad, weights.grad)]
        for ours, theirs in zip(
            found, (expected + with_residual * residual, *gradients), strict=True
        ):
            assert relative_error(ours, theirs) < engine.tolerance
        assert weights.grad.dtype == np.float32 and weights.grad.flags.c_contiguous
        assert y.dtype == h.grad.dtype == h.dtype
        assert not engine.backend or is_channels_last(y.array) and is_channels_last(h.grad)
        if with_residual:
            assert relative_error(host(shortcut.grad), gy) < engine.tolerance


def test_gradients_of_shared_inputs_add_up(engine):
    """x goes into two convolutions and is a residual, W is used twice; nothing is lost."""
    x, W, _, _ = draw_convolution((2, 16, 6, 6, 16, 3, 1, 1))
    images, weights = map(chainer.Variable, engine.send(x, W / 16))
    h = as_activation(images)
    y = conv2d(h, weights, 1, 1, residual=h)
    z = conv2d(h, weights, 1, 1, residual=y)
    z.grad = z.xp.ones(z.shape, z.dtype)
    z.backward()
    ones = np.ones(z.shape)
    gx, gW = conv2d_gradients(x, W / 16, ones, 1, 1)
    assert relative_error(host(images.grad), 2 * gx + ones) < engine.tolerance
    assert relative_error(host(weights.grad), 2 * gW) < engine.tolerance


def test_gradient_given_by_the_user_is_not_written_to(engine):
    x, W, residual, gy = engine.send(*draw_convolution((2, 16, 6, 6, 16, 3, 1, 1)))
    h = as_activation(chainer.Variable(x))
    y = conv2d(h, chainer.Parameter(W), 1, 1, residual=h)
    y.grad = gy = gy.astype(y.dtype)
    before = gy.copy()
    y.backward(retain_grad=True)
    np.testing.assert_array_equal(host(gy), host(before))
    np.testing.assert_array_equal(host(y.grad), host(before))


@on_host
def test_memory_of_any_layout_is_accepted_and_left_alone(engine):
    x, W, _, _ = draw_convolution((4, 16, 6, 6, 16, 3, 1, 1))
    dtype = as_activation(x).dtype
    expected = conv2d(as_activation(x), W, 1, 1).array
    wide = np.zeros((4, 16, 6, 12), dtype)
    wide[..., ::2] = x
    wide.flags.writeable = W.flags.writeable = False
    for layout in (x.astype(dtype), np.asfortranarray(x.astype(dtype)), wide[..., ::2]):
        np.testing.assert_array_equal(conv2d(layout, W, 1, 1).array, expected)
    flipped = np.ascontiguousarray(W[::-1])[::-1]
    np.testing.assert_array_equal(conv2d(as_activation(x), flipped, 1, 1).array, expected)
    last = engine.backend.as_activation(x)
    again = engine.backend.as_activation(last)
    assert again is last or again.base is last.base


@on_host
def test_wrong_arrays_are_refused(engine):
    x, W, _, _ = draw_convolution((2, 16, 6, 6, 16, 3, 1, 1))
    x64, W64, gamma, beta = np.float64(x), np.float64(W), *np.ones((2, 16), np.float32)
    running, h = np.ones((2, 16), np.float32), as_activation(x).array
    calls = [
        (TypeError, "dtype float64", lambda: conv2d(x64, W, 1, 1)),
        (TypeError, "W: dtype float64", lambda: conv2d(h, W64, 1, 1)),
        (TypeError, "activation: dtype uint8", lambda: as_activation(x.astype(np.uint8))),
        (ValueError, "(activation|residual): shape", lambda: conv2d(h, W, 2, 1, residual=h)),
        (TypeError, "dtype float64", lambda: batch_norm_relu(x64, gamma, beta, *running)),
        (TypeError, "dtype float64", lambda: batch_norm_relu(h, np.float64(gamma), beta, *running)),
    ]
    if engine.backend.name == "onednn":
        calls += [
            (ValueError, "convolution of x", lambda: conv2d(h, W[:, :5], 1, 1)),
            (ValueError, "convolution of x", lambda: conv2d(h[:, :, :2, :2], W, 1, 0)),
            (ValueError, "beta: shape", lambda: batch_norm_relu(h, gamma, beta[:5], *running)),
        ]
    for error, words, call in calls:
        with pytest.raises(error, match=words):
            call()


def test_nothing_is_kept_without_backprop():
    x, W, _, _ = draw_convolution((2, 16, 6, 6, 16, 3, 1, 1))
    backend("fp32")
    chosen = onednn.load("fp32")
    with chainer.using_config("jo_backend", chosen), chainer.no_backprop_mode():
        h = as_activation(x)
        for _ in range(3):
            h = conv2d(h, W, 1, 1)
    # as_activation's copy is h; besides it two results at a time, and weights in the plan's layout.
    assert chosen.buffers.allocated <= 3 * h.array.nbytes + 2 * W.nbytes


def draw(shape):
    """x, gamma, beta, gy. ReLU's kink is kept away from every value, so that no engine's rounding
    can move one across it: whether a unit is active is decided by beta's sign and size."""
    rng = np.random.default_rng(0)
    c = shape[1]
    # Values with small deviations around 0, sums of which are far from +-beta.
    x = rng.integers(-64, 65, shape) / 32
    gamma = rng.uniform(0.05, 0.15, c) * rng.choice([-1, 1], c)
    beta = rng.uniform(1.0, 2.0, c) * rng.choice([-1, 1, 1], c)
    gy = rng.integers(-64, 65, shape) / 32
    return [np.float32(a) for a in (x, gamma, beta, gy)]


def averages(engine, channels, mean=0.0, var=1.0):
    """Running averages on the engine's device."""
    return engine.send(np.full(channels, mean, "f"), np.full(channels, var, "f"))


def train(engine, arrays, running):
    """y, gx, ggamma and gbeta of a batch normalisation with ReLU."""
    x, gamma, beta, gy = engine.send(*arrays)
    images, scale, shift = chainer.Variable(x), chainer.Parameter(gamma), chainer.Parameter(beta)
    h = as_activation(images)
    y = batch_norm_relu(h, scale, shift, *running)
    y.grad = gy.astype(y.dtype)
    y.backward(retain_grad=True)
    assert y.dtype == h.grad.dtype == h.dtype and scale.grad.dtype == shift.grad.dtype == "f"
    assert not engine.backend or is_channels_last(y.array) and is_channels_last(h.grad)
    return [host(a) for a in (y.array, images.grad, scale.grad, shift.grad)]


@on_activations
def test_batch_norm_relu_and_gradients(engine, shape):
    x, gamma, beta, gy = arrays = draw(shape)
    running = averages(engine, shape[1], 0.5, 2.0)
    found = train(engine, arrays, running)
    mean, var = np.float64(x).mean(axis=(0, 2, 3)), np.float64(x).var(axis=(0, 2, 3))
    samples = x.size // shape[1]
    expected_y = batch_norm_relu64(x, gamma, beta, mean, var, EPS)
    assert relative_error(found[0], expected_y) < engine.tolerance
    _, *expected = batch_norm_relu_gradients(*arrays)
    size = np.linalg.norm(expected[2]) + np.linalg.norm(gamma[:, None] * gy.reshape(1, -1))
    for ours, theirs in zip(found[1:], expected, strict=True):
        assert np.linalg.norm(np.float64(ours) - theirs) < 2 * engine.tolerance * max(
            np.linalg.norm(theirs), 0.01 * size
        )
    unbiased = var * samples / max(samples - 1, 1)
    assert relative_error(host(running[0]), 0.9 * 0.5 + 0.1 * mean) < 1e-5
    assert relative_error(host(running[1]), 0.9 * 2.0 + 0.1 * unbiased) < 1e-5


@on_activations
def test_batch_norm_relu_with_fixed_statistics(engine, shape):
    x, gamma, beta, _ = draw(shape)
    mean = np.linspace(-0.5, 0.5, shape[1], dtype=np.float32)
    var = np.linspace(0.5, 2.0, shape[1], dtype=np.float32)
    images, *parameters, kept_mean, kept_var = engine.send(x, gamma, beta, mean.copy(), var.copy())
    with chainer.using_config("train", False):
        y = batch_norm_relu(as_activation(images), *parameters, kept_mean, kept_var)
    expected = batch_norm_relu64(x, gamma, beta, mean, var, EPS)
    assert relative_error(host(y.array), expected) < engine.tolerance
    np.testing.assert_array_equal((host(kept_mean), host(kept_var)), (mean, var))


def test_no_gradient_in_test_mode():
    x, gamma, beta, gy = draw(ACTIVATIONS[0])
    running = np.zeros(32, np.float32), np.ones(32, np.float32)
    used = chainer.using_config("jo_backend", backend("fp32"))
    with used, chainer.using_config("train", False):
        y = batch_norm_relu(as_activation(chainer.Variable(x)), gamma, beta, *running)
    y.grad = gy
    with pytest.raises(RuntimeError, match="no gradient in test mode"):
        y.backward()


def test_gradient_that_is_there_is_added_to(engine):
    arrays = draw((8, 16, 4, 4))
    _, gx, _, _ = train(engine, arrays, averages(engine, 16))
    x, gamma, beta, gy = engine.send(*arrays)
    images = chainer.Variable(x)
    h = as_activation(images)
    y = batch_norm_relu(h, gamma, beta, *averages(engine, 16)) + h + h
    y.grad = gy.astype(y.dtype)
    y.backward()
    assert relative_error(host(images.grad), gx + 2 * arrays[3]) < engine.tolerance


def test_gradients_of_shared_parameters_add_up(engine):
    x, gamma, beta, gy = draw((8, 16, 4, 4))
    other = x[::-1].copy()
    once = train(engine, (x, gamma, beta, gy), averages(engine, 16))
    twice = train(engine, (other, gamma, beta, gy), averages(engine, 16))
    scale, shift = map(chainer.Parameter, engine.send(gamma, beta))
    images, running = engine.send(x, other), averages(engine, 16)
    y = sum(batch_norm_relu(as_activation(each), scale, shift, *running) for each in images)
    y.grad = engine.send(gy)[0].astype(y.dtype)
    y.backward()
    for found, one, two in zip((scale.grad, shift.grad), once[2:], twice[2:], strict=True):
        assert relative_error(host(found), np.float64(one) + two) < engine.tolerance


@on_activations
def test_spatial_mean(engine, shape):
    x, _, _, _ = draw(shape)
    gy = np.random.default_rng(1).standard_normal(shape[:2]).astype(np.float32)
    images, gradient = engine.send(x, gy)
    images = chainer.Variable(images)
    y = spatial_mean(as_activation(images))
    assert y.dtype == np.float32
    assert relative_error(host(y.array), np.float64(x).mean(axis=(2, 3))) < 1e-5
    y.grad = gradient
    y.backward()
    n, c, h, w = shape
    expected = np.broadcast_to(gy[:, :, None, None] / (h * w), shape)
    assert relative_error(host(images.grad), expected) < engine.tolerance


def test_linear(engine):
    rng = np.random.default_rng(2)
    x, W, b, gy = (np.float32(rng.standard_normal(s)) for s in ((6, 5), (3, 5), 3, (6, 3)))
    *operands, gradient = engine.send(x, W, b, gy)
    rows, weights, bias = map(chainer.Variable, operands)
    y = linear(rows, weights, bias)
    y.grad = gradient
    y.backward()
    expected = x @ np.float64(W).T + b, gy @ np.float64(W), gy.T @ np.float64(x), gy.sum(axis=0)
    for found, exact in zip((y.array, rows.grad, weights.grad, bias.grad), expected, strict=True):
        assert relative_error(host(found), exact) < 1e-6


def paper_network(dtype=np.float32):
    """The paper's network, with betas that keep most activations away from where ReLU bends.

    At zero a rounding error decides whether a gradient passes: from the usual start, gradients in
    float32 and in float64 differ by some 5e-3 in stock Chainer already.
    """
    network, rng = PreActResNet(rng=np.random.RandomState(3)), np.random.default_rng(5)
    for name, param in sorted(network.namedparams()):
        if name.endswith("/beta"):
            param.array[...] = np.where(rng.random(param.size) < 0.75, 2.5, -2.5)
        param.array = param.array.astype(dtype)
    for bn in (link for link in network.links() if hasattr(link, "avg_var")):
        bn.avg_mean, bn.avg_var = bn.avg_mean.astype(dtype), bn.avg_var.astype(dtype) + 1
    return network


def trained(network, engine):
    """Logits in training and in test mode, running averages, and every parameter's gradient."""
    rng = np.random.default_rng(4)
    dtype = network.dense.W.dtype
    x, labels = engine.send(rng.standard_normal((4, 3, 16, 16)).astype(dtype), np.arange(4))
    network.to_device(engine.device)
    with chainer.using_config("jo_backend", engine.backend):
        logits = network(x)
        scale = engine.backend.loss_scale if engine.backend else 1.0
        network.cleargrads()
        F.softmax_cross_entropy(logits, labels).backward(loss_scale=scale)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            tested = network(x)
    averages = [link.avg_var for link in network.links() if hasattr(link, "avg_var")]
    outputs = [host(a).ravel() for a in (logits.array, tested.array, *averages)]
    gradients = [host(param.grad) / scale for _, param in sorted(network.namedparams())]
    return np.concatenate(outputs), gradients


@pytest.fixture(scope="module")
def float64():
    return trained(paper_network(np.float64), Engine(None, 0))


def test_the_papers_network(engine, float64):
    """On small images; all gradients together, and none by itself far off."""
    outputs, gradients = trained(paper_network(), engine)
    assert relative_error(outputs, float64[0]) < engine.tolerance
    whole, expected = (np.concatenate([g.ravel() for g in gs]) for gs in (gradients, float64[1]))
    assert relative_error(whole, expected) < engine.tolerance
    errors = list(map(relative_error, gradients, float64[1]))
    assert max(errors) < 0.5 and np.median(errors) < 15 * engine.tolerance


ONES, VECTORS = np.ones((4, 4, 3, 3), np.float32), np.ones((4, 4), np.float32)
#: Functions whose backward pass runs once.
ONCE = {
    "conv2d": lambda x: conv2d(as_activation(x), ONES, 1, 1),
    "batch_norm_relu": lambda x: batch_norm_relu(as_activation(x), *VECTORS.copy()),
    "perceptron": lambda x: FeatureNetwork(4, 4, 4)(x[:, :, 0, 0]),
}


@pytest.mark.parametrize("function", ONCE.values(), ids=ONCE)
def test_a_second_backward_pass_and_derivatives_of_gradients_are_refused(function):
    x = chainer.Variable(np.random.default_rng(0).standard_normal((3, 4, 5, 5), np.float32))
    with chainer.using_config("jo_backend", backend("fp32")):
        loss = F.sum(function(x) ** 2)
        with pytest.raises(RuntimeError, match="its gradient has no derivative"):
            chainer.grad([loss], [x], enable_double_backprop=True)
        loss = F.sum(function(x) ** 2)
        loss.backward()
        with pytest.raises(RuntimeError, match="backward has run already, expected once"):
            loss.backward()
