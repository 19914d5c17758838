"""`residual_branch` as one node, against the functions that it is put together from."""

import chainer
import numpy as np
import pytest
from engines import provider

from chainer_jo.functions import as_activation, batch_norm_relu, conv2d, residual_branch

# n, c, h, w, out channels, stride
SHAPES = [(4, 16, 8, 8, 16, 1), (3, 5, 7, 6, 9, 2)]


def put_together(h, W1, stride, gamma, beta, mean, var, W2, residual):
    activated = batch_norm_relu(conv2d(h, W1, stride, 1), gamma, beta, mean, var)
    return conv2d(activated, W2, 1, 1, residual)


@pytest.mark.parametrize("name", ["fp32", "mixed"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shared", [False, True])
def test_values_gradients_and_averages(name, shape, shared):
    """`shared`: what goes in is the residual, too, and so has two gradients."""
    n, c, h, w, o, stride = shape
    shared = shared and stride == 1 and c == o
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, c, h, w), np.float32)
    W1, W2 = (rng.standard_normal((o, i, 3, 3), np.float32) / 12 for i in (c, o))
    gamma, beta = rng.standard_normal((2, o), np.float32)
    found = []
    for function in (residual_branch, put_together):
        with chainer.using_config("jo_provider", provider(name)):
            images = chainer.Variable(x)
            parameters = [chainer.Parameter(p.copy()) for p in (W1, gamma, beta, W2)]
            averages = [np.zeros(o, np.float32), np.ones(o, np.float32)]
            inside = as_activation(images)
            size = (n, o, -(-h // stride), -(-w // stride))
            residual = inside if shared else as_activation(np.ones(size, np.float32))
            y = function(
                inside, parameters[0], stride, *parameters[1:3], *averages, parameters[3], residual
            )
            y.grad = y.array.copy()
            y.backward()
        found.append([y.array, images.grad, *(p.grad for p in parameters), *averages])
    for ours, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, expected)
