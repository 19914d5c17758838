"""oneDNN's backend: the paper's network, its gradients, and threads."""

import copy
from concurrent.futures import ThreadPoolExecutor

import chainer
import numpy as np
import pytest
from engines import backend
from float64_backend import Float64
from float64_functions import relative_error

from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.reproduction.running.provenance import computing


def losses_and_gradients(net, chosen):
    """Logits in training and (but for Float64) in test mode, and every parameter's gradient."""
    rng = np.random.RandomState(2)
    x, labels = rng.randn(8, 3, 32, 32).astype(np.float32), np.arange(8, dtype=np.int32)
    for link in net.links():
        if hasattr(link, "avg_mean"):
            link.avg_mean[:], link.avg_var[:] = 0, 1
    with chainer.using_config("jo_backend", chosen):
        net.cleargrads()
        logits = net(x)
        chainer.functions.softmax_cross_entropy(logits, labels).backward()
        gradients = {name: p.grad for name, p in net.namedparams()}
        if isinstance(chosen, Float64):
            return logits.array, None, gradients
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return logits.array, net(x).array, gradients


def in_float64(net):
    """A copy of a network with float64 parameters and statistics."""
    net = copy.deepcopy(net)
    for parameter in net.params():
        parameter.array = parameter.array.astype(np.float64)
    for link in net.links():
        if hasattr(link, "avg_mean"):
            link.avg_mean = link.avg_mean.astype(np.float64)
            link.avg_var = link.avg_var.astype(np.float64)
    return net


def active_units(chosen, monkeypatch):
    """The list that `chosen` will have filled in with where its ReLUs were active."""
    kind, active = type(chosen), []
    original = kind.batch_norm_relu_train

    def noting(*arguments):
        results = original(*arguments)
        active.append(np.float32(results[0]) > 0)
        return results

    monkeypatch.setattr(kind, "batch_norm_relu_train", noting)
    return active


def errors(found, expected):
    return [relative_error(found[name], expected[name]) for name in expected]


@pytest.mark.parametrize(
    ("name", "of_outputs", "of_gradients"), [("fp32", 1e-5, 3e-5), ("mixed", 2e-2, 0.15)]
)
def test_the_papers_network(name, of_outputs, of_gradients, monkeypatch):
    """Outputs as stock Chainer's in both modes; all gradients as in float64 with the same units
    active (see `float64_backend`); and the same run twice is bit-identical."""
    net, chosen = PreActResNet(rng=np.random.RandomState(0)), backend(name)
    stock = losses_and_gradients(net, None)
    active = active_units(chosen, monkeypatch)
    ours, again = (losses_and_gradients(net, chosen) for _ in range(2))
    np.testing.assert_equal(ours, again)
    truth = losses_and_gradients(in_float64(net), Float64(active))
    assert relative_error(ours[0], stock[0]) < of_outputs
    assert relative_error(ours[1], stock[1]) < of_outputs
    found = errors(ours[2], truth[2])
    assert max(found) < of_gradients
    assert np.median(found) < of_gradients / 3


def test_number_of_threads():
    chosen = backend("fp32")
    before = chosen.threads
    x = np.random.RandomState(0).randn(4, 16, 8, 8).astype(np.float32)
    W = np.random.RandomState(1).randn(16, 16, 3, 3).astype(np.float32)
    try:
        results = {}
        for count in (1, 2, 3):
            chosen.set_threads(count)
            assert computing(chainer.get_device("@numpy"), chosen)["threads"] == count
            results[count] = chosen.conv2d(x, W, 1, 1, None)
    finally:
        chosen.set_threads(before)
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
