"""On a GPU: own kernels against float64 NumPy, and beside cuDNN's plans. Skipped without a GPU."""

import numpy as np
import pytest
from fake_cudnn import conv, dgrad, wgrad
from float64_functions import batch_norm_relu_gradients
from test_gpu import OBSTACLE, assert_close, cupy, pytestmark  # noqa: F401 - pytest's

from chainer_jo.engine.cuda import batch_norm_kernels, conv32_kernels
from chainer_jo.engine.cuda.candidates import MIN_CAPABILITY, TOLERANCE

TAPS = [1, 1], [1, 1]
NEEDS_TENSOR_CORES = pytest.mark.skipif(
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


@NEEDS_TENSOR_CORES
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
