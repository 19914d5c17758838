"""On a GPU: own kernels against float64 NumPy, and beside cuDNN's plans. Skipped without a GPU."""

import numpy as np
import pytest
from fake_cudnn import conv, dgrad, wgrad
from float64_functions import batch_norm_relu_gradients
from test_gpu import OBSTACLE, TRAINED, assert_close, cupy, pytestmark, train  # noqa: F401
from test_gpu_runs import trained

from chainer_jo.engine.backend import EPS
from chainer_jo.engine.cuda import batch_norm_kernels, conv32_kernels
from chainer_jo.engine.cuda.candidates import MIN_CAPABILITY, TOLERANCE
from chainer_jo.engine.cuda.cudnn import load
from chainer_jo.engine.cuda.cudnn_choices import Choices
from chainer_jo.engine.cuda.cudnn_planner import Plan, Planner

TAPS = [1, 1], [1, 1]
NEEDS_OWN_KERNELS = pytest.mark.skipif(
    not OBSTACLE and int(cupy.cuda.Device().compute_capability) < MIN_CAPABILITY,
    reason=f"needs compute capability {MIN_CAPABILITY / 10}",
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=[1, 3], ids="{}-blocks".format)
def few_blocks(request, monkeypatch):
    """So few that a block has several tiles, or several pixels for each thread."""
    monkeypatch.setattr(batch_norm_kernels, "BLOCKS", request.param)
    monkeypatch.setattr(conv32_kernels, "GRAD_BLOCKS", request.param)


def nhwc(rng, shape, dtype, scale=1.0, shift=0.0):
    """Normal activations of the logical shape (n, c, h, w)."""
    n, c, h, w = shape
    drawn = rng.standard_normal((n, h, w, c)) * scale + shift
    return cupy.asarray(drawn.astype(dtype)).transpose(0, 3, 1, 2)


def poisoned(shape, dtype):
    n, c, h, w = shape
    return cupy.full((n, h, w, c), np.nan, dtype).transpose(0, 3, 1, 2)


def float64(array):
    return array.get().astype(np.float64)


@pytest.mark.parametrize("precision", ["mixed", "fp32"])
@pytest.mark.parametrize("channels", [8, 32, 128])
def test_batch_norm(few_blocks, rng, precision, channels):
    """Channels with means of up to 30 standard deviations, whose squares would cancel."""
    tolerance, dtype = TOLERANCE[precision], np.float16 if precision == "mixed" else np.float32
    shape = int(rng.integers(2, 6)), channels, *map(int, rng.integers(3, 17, 2))
    x = nhwc(rng, shape, dtype, rng.uniform(0.5, 2, channels), rng.uniform(-30, 30, channels))
    gy, residual = nhwc(rng, shape, dtype), nhwc(rng, shape, dtype)
    gamma, beta = (cupy.asarray(rng.uniform(-1, 1, channels), np.float32) for _ in range(2))
    y64, gx64, ggamma64, gbeta64 = batch_norm_relu_gradients(*map(float64, (x, gamma, beta, gy)))
    results = []
    for added in ({}, {"residual": residual}):
        y, gx = poisoned(shape, dtype), poisoned(shape, dtype)
        mean, inverse, ggamma, gbeta = (cupy.full(channels, np.nan, np.float32) for _ in range(4))
        for operation in ("batch_norm", "batch_norm_grad"):
            batch_norm_kernels.launch_for(precision, operation, shape, True)({
                "x": x, "gy": gy, "gamma": gamma, "beta": beta, "y": y, "mean": mean,
                "inverse": inverse, "gx": gx, "ggamma": ggamma, "gbeta": gbeta, **added,
            })  # fmt: skip
        there = float64(residual) if added else 0
        expected = (
            ("y", y, y64), ("mean", mean, float64(x).mean(axis=(0, 2, 3))),
            ("gx", gx, gx64 + there), ("ggamma", ggamma, ggamma64), ("gbeta", gbeta, gbeta64),
        )  # fmt: skip
        for name, ours, reference in expected:
            assert_close(name, ours, reference, tolerance / 20)
        results.append([a.get() for a in (y, mean, inverse, ggamma, gbeta)])
    assert all(map(np.array_equal, *results)), "the same sums twice differ"


@NEEDS_OWN_KERNELS
def test_convolution_of_32_channels(few_blocks, rng):
    shape, half = (int(rng.integers(2, 4)), 32, 32, 32), np.float16
    x, gy, residual = (nhwc(rng, shape, half) for _ in range(3))
    W = nhwc(rng, (32, 32, 3, 3), half)
    x64, gy64, W64, there = map(float64, (x, gy, W, residual))
    y64, gx64 = conv(x64, W64, *TAPS), dgrad(gy64, W64, shape, *TAPS)
    gW64 = wgrad(x64, gy64, W.shape, *TAPS)
    for operation, result, expected, added in (
        ("convolution", "y", y64, {}),
        ("convolution", "y", y64 + there, {"residual": residual}),
        ("convolution_grad_input", "gx", gx64, {}),
        ("convolution_grad_input", "gx", gx64 + there, {"residual": residual}),
        ("convolution_grad_weight", "gW", gW64, {}),
    ):
        ours = poisoned(expected.shape, half)
        launch = conv32_kernels.launch_for("mixed", operation, shape, W.shape, 1, 1)
        launch({"x": x, "gy": gy, "W": W, result: ours, **added})
        assert_close(f"{result} {list(added)}", ours, expected, TOLERANCE["mixed"] / 20)


@NEEDS_OWN_KERNELS
@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_statistics_of_a_convolution(rng, spread):
    """Mean and inverse standard deviation of the rounded y, with the same bits at every call; the
    squares of channels with means of up to 500 standard deviations would cancel."""
    shape, half = (int(rng.integers(1, 6)), 32, 32, 32), np.float16
    x, W = nhwc(rng, shape, half, spread / 17), nhwc(rng, (32, 32, 3, 3), half)
    residual = nhwc(rng, shape, half, spread / 10, rng.uniform(-5, 5, 32))
    results = []
    for _ in range(2):
        y, mean, inverse = poisoned(shape, half), *cupy.full((2, 32), np.nan, np.float32)
        conv32_kernels.launch_for("mixed", "convolution", shape, W.shape, 1, 1)({
            "x": x, "W": W, "residual": residual, "y": y, "mean": mean, "inverse": inverse,
        })  # fmt: skip
        y64 = float64(y)
        assert_close("mean", mean, y64.mean(axis=(0, 2, 3)), 1e-6)
        assert_close("inverse", inverse, 1 / np.sqrt(y64.var(axis=(0, 2, 3)) + EPS), 1e-6)
        results.append([a.get() for a in (y, mean, inverse)])
    assert all(map(np.array_equal, *results))


@pytest.fixture
def own(monkeypatch):
    """Own kernels win wherever they agree with cuDNN: the names of the plans chosen so far."""
    chosen = set()

    def settle(planner, plan, times):
        name = list(plan.candidates)[-1]
        plan.choose(name)
        chosen.add(name)

    monkeypatch.setattr(Planner, "settle", settle)
    monkeypatch.setattr(Plan, "times", lambda plan, *arguments: {})
    monkeypatch.setattr(Choices, "get", lambda choices, graph: None)
    return chosen


@NEEDS_OWN_KERNELS
def test_convolution_and_batch_norm_by_own_plans(own, rng, caplog):
    backend, shape = load("mixed"), (1, 32, 32, 32)
    x, gy, accumulate = (nhwc(rng, shape, np.float16) for _ in range(3))
    W = cupy.asarray(rng.standard_normal((32, 32, 3, 3)), np.float32)
    gamma, beta = (cupy.asarray(rng.uniform(-1, 1, 32), np.float32) for _ in range(2))
    y, _, _, saved = backend.batch_norm_relu_train(x, gamma, beta)
    gx, *_ = backend.batch_norm_relu_grad(x, y, gamma, gy, saved, accumulate)
    y64, gx64, _, _ = batch_norm_relu_gradients(*map(float64, (x, gamma, beta, gy)))
    x64, gy64, W64, there = map(float64, (x, gy, W, accumulate))
    for name, ours, expected in (
        ("y of batch norm", y, y64),
        ("gx of batch norm", gx, gx64 + there),
        ("y", backend.conv2d(x, W, 1, 1, accumulate), conv(x64, W64, *TAPS) + there),
        ("gx", backend.conv2d_grad_input(gy, W, shape, 1, 1, None), dgrad(gy64, W64, shape, *TAPS)),
        ("gW", backend.conv2d_grad_weight(x, gy, W.shape, 1, 1), wgrad(x64, gy64, W.shape, *TAPS)),
    ):
        assert_close(name, ours, expected, TOLERANCE["mixed"])
    assert own == {"jo_batch_norm", "jo_conv32_sums"} and not caplog.records


@NEEDS_OWN_KERNELS
def test_calls_and_replays_with_own_batch_norm(own, tmp_path):
    called, reports = train(tmp_path / "called", "mixed", False, 2)
    replayed, same_reports = train(tmp_path / "replayed", "mixed", True, 2)
    for what, ours, theirs in zip(TRAINED, replayed, called, strict=True):
        assert np.array_equal(ours, theirs), what
    assert reports == same_reports and "jo_batch_norm" in own


@NEEDS_OWN_KERNELS
def test_a_convolutions_statistics_are_used_for_its_result_alone(own, rng, monkeypatch):
    """Of other arrays, also at the same address, batch normalisation has their own statistics."""
    backend, shape, kernels = load("mixed"), (2, 32, 32, 32), []
    launch = batch_norm_kernels.launch
    monkeypatch.setattr(
        batch_norm_kernels, "launch", lambda *a: (kernels.append(a[2]), launch(*a))[1]
    )
    x, other = (nhwc(rng, shape, np.float16) for _ in range(2))
    W = cupy.asarray(rng.standard_normal((32, 32, 3, 3)), np.float32)
    gamma, beta = cupy.ones(32, np.float32), cupy.zeros(32, np.float32)

    def kernels_of(x):
        del kernels[:]
        y, mean, inverse, _ = backend.batch_norm_relu_train(x, gamma, beta)
        x64 = float64(x)
        mean64, var64 = (f(x64, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
        inverse64 = 1 / np.sqrt(var64 + EPS)
        assert_close("mean", mean, mean64.ravel(), 1e-5)
        assert_close("inverse", inverse, inverse64.ravel(), 1e-5)
        assert_close("y", y, np.maximum((x64 - mean64) * inverse64, 0), TOLERANCE["mixed"])
        return kernels

    kernels_of(other)  # chooses the plans
    kernels_of(x[:1])
    for residual in (None, other):
        with backend.step([]):
            y = backend.conv2d(x, W, 1, 1, residual)
            assert kernels_of(y) == ["normalise"]
            assert kernels_of(y[:1]) == ["statistics", "normalise"]
            assert kernels_of(other) == ["statistics", "normalise"]
            y = None
            assert kernels_of(other.copy("A") * 2) == ["statistics", "normalise"]
    assert kernels_of(backend.conv2d(x, W, 1, 1, None)) == ["statistics", "normalise"]


@NEEDS_OWN_KERNELS
def test_calls_and_replays_with_statistics_by_convolutions(own):
    """A run called alone, and replayed in turns with another one."""
    sizes = {"images": 4, "side": 32, "width": 32}
    called, _ = trained("0000", **sizes, graph=False)
    beside, _ = trained("01" * 4, **sizes)
    assert all(np.isfinite(array).all() for array in called)
    assert all(map(np.array_equal, beside, called))
    assert {"jo_batch_norm", "jo_conv32_sums"} < own
