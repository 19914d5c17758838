"""The cuDNN backend without a GPU: its graphs on a library that computes them in NumPy."""

import gc
from contextlib import nullcontext

import chainer
import numpy as np
import pytest
from chainer import functions as F
from engines import stand_in
from fake_cudnn import WORKSPACE, data_type
from float64_functions import relative_error

from chainer_jo.engine.interface import PRECISIONS
from chainer_jo.errors import UserError
from chainer_jo.method.preact_resnet import PreActResNet


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_whole_step_is_its_parts_bit_for_bit(precision):
    """Weights, gradients and averages of all layers at once, where every layer is called twice; and
    what a parameter holds for its gradient is never taken for it."""

    def results(whole):
        backend, _ = stand_in(precision)
        network = PreActResNet(3, 10, (2, 2), (8, 16), np.random.RandomState(0))
        params = [p for _, p in sorted(network.namedparams())]
        weights = [(p.array, np.full_like(p.array, np.nan)) for p in params if p.ndim == 4]
        x = draw(np.random.default_rng(1), 4, 3, 8, 8)
        step = backend.step(weights) if whole else nullcontext({})
        with chainer.using_config("jo_backend", backend), step as kept:
            loss = F.softmax_cross_entropy(network(x) + network(-x), np.arange(4))
            network.cleargrads()
            loss.backward(loss_scale=backend.loss_scale)
        assert len(kept) == (len(weights) if whole else 0)
        grads = [kept.get(p.array.ctypes.data, p.grad) for p in params]
        averages = [link.avg_mean for link in network.links() if hasattr(link, "avg_mean")]
        averages += [link.avg_var for link in network.links() if hasattr(link, "avg_var")]
        return grads, averages

    (ours, averages), (parts, same) = results(True), results(False)
    half = 2e-3 if precision == "mixed" else 0  # a sum of two is rounded to float16
    for a, b in zip(ours, parts, strict=True):
        assert relative_error(a.astype(np.float32), b) <= half
    assert all(np.array_equal(a, b) for a, b in zip(averages, same, strict=True))


@pytest.mark.parametrize(("precision", "fused"), [("fp32", False), ("tf32", True), ("mixed", True)])
def test_additions_are_in_the_graphs_of_convolutions_but_in_fp32(rng, precision, fused):
    backend, library = stand_in(precision)
    x, gy = (backend.as_activation(draw(rng, 2, 8, 6, 6)) for _ in range(2))
    W = draw(rng, 8, 8, 3, 3)
    backend.conv2d(x, W, 1, 1, gy)
    backend.conv2d_grad_input(gy, W, x.shape, 1, 1, x)
    added = ["add"] if fused else []
    assert [graph.nodes for graph in library.graphs] == [
        ["conv_fprop", *added], ["conv_dgrad", *added]
    ]  # fmt: skip


def test_graphs_are_planned_once_per_shape(rng):
    backend, library = stand_in("tf32")
    x, W = draw(rng, 2, 3, 6, 6), draw(rng, 4, 3, 3, 3)
    for _ in range(3):
        backend.conv2d(x, W, 1, 1, None)
        backend.conv2d(x, W, 1, 1, draw(rng, 2, 4, 6, 6))
        backend.batch_norm_relu_train(x, *np.ones((2, 3), np.float32))
    assert [graph.runs for graph in library.graphs] == [3, 3, 3]
    backend.conv2d(x[:1], W, 1, 1, None)
    assert len(library.graphs) == 4


def test_what_has_no_engine_is_not_tried_again(rng):
    backend, library = stand_in("tf32", ({"add"},))
    for _ in range(3):
        backend.conv2d(draw(rng, 2, 3, 6, 6), draw(rng, 4, 3, 3, 3), 1, 1, draw(rng, 2, 4, 6, 6))
    assert [graph.runs for graph in library.graphs] == [0, 3]


@pytest.mark.parametrize(("precision", "refused", "taken"), [
    ("fp32", {"NONDETERMINISTIC", "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "WINOGRAD"}, set()),
    ("tf32", {"NONDETERMINISTIC", "DOWN_CONVERT_INPUTS"}, {"TENSOR_CORE"}),
    ("mixed", {"NONDETERMINISTIC"}, {"TENSOR_CORE"}),
])  # fmt: skip
def test_engines_that_a_precision_refuses(rng, precision, refused, taken):
    backend, library = stand_in(precision)
    backend.conv2d(backend.as_activation(draw(rng, 2, 3, 6, 6)), draw(rng, 4, 3, 3, 3), 1, 1, None)
    for graph in library.graphs:
        assert refused <= set(graph.refused) and not taken & set(graph.refused)
        assert graph.io_data_type is (data_type.HALF if precision == "mixed" else data_type.FLOAT)


def test_work_follows_cupys_stream_and_pool(rng):
    backend, library = stand_in()
    arrays = backend._xp
    x, W = draw(rng, 2, 3, 6, 6), draw(rng, 4, 3, 3, 3)
    backend.conv2d(x, W, 1, 1, None)
    backend.conv2d(x, W, 1, 1, None)
    arrays.stream = 9
    backend.conv2d(x, W, 1, 1, None)
    assert library.streams == [7, 9]
    assert [a.nbytes for a in arrays.allocated] == [WORKSPACE] * 3


def test_the_handle_is_destroyed_once_with_the_backend():
    backend, library = stand_in()
    assert not library.destroyed
    del backend
    gc.collect()
    assert library.destroyed == ["handle"]


def test_addresses_are_aligned_whatever_the_arguments(rng):
    """Parameters are views of one flat buffer, activations may be slices."""
    backend, _ = stand_in()

    def shifted(*shape):
        return draw(rng, int(np.prod(shape)) + 1)[1:].reshape(shape)

    x = backend.as_activation(draw(rng, 3, 3, 5, 5))[1:]
    W, residual = shifted(4, 3, 1, 1), shifted(2, 4, 5, 5)
    assert np.allclose(
        backend.conv2d(x, W, 1, 0, residual), np.einsum("nchw,ocij->nohw", x, W) + residual
    )
    y, _, _, saved = backend.batch_norm_relu_train(x, shifted(3), shifted(3))
    backend.batch_norm_relu_grad(x, y, shifted(3), x, saved, None)


def test_a_convolution_without_any_engine_is_the_users_error(rng):
    backend, _ = stand_in(unsupported=({"conv_fprop"},))
    with pytest.raises(UserError, match=r"no engine for the convolution of \(2, 4, 6, 6\)"):
        backend.conv2d(draw(rng, 2, 4, 6, 6), draw(rng, 5, 4, 3, 3), 1, 1, None)
