"""Convolution and gradients in float64 by Chainer, batch normalisation from its definition."""

import chainer
import chainer.functions as F
import numpy as np


def float64(a):
    """As an array; NumPy before 2.4 makes a scalar of an array of one element."""
    return np.asarray(a, np.float64)


def conv2d(x, W, stride, pad):
    return F.convolution_2d(float64(x), float64(W), None, stride, pad).array


def conv2d_gradients(x, W, gy, stride, pad):
    """gx and gW, the transposes of the linear maps x -> y and W -> y applied to gy."""
    x, W = (chainer.Variable(float64(a)) for a in (x, W))
    with chainer.using_config("enable_backprop", True):  # within another's backward pass, too
        y = F.convolution_2d(x, W, None, stride, pad)
    y.grad = float64(gy)
    y.backward()
    return x.grad, W.grad


def batch_norm_relu(x, gamma, beta, mean, var, eps):
    """relu(gamma (x - mean) / sqrt(var + eps) + beta)."""
    x, gamma, beta, mean, var = (float64(a) for a in (x, gamma, beta, mean, var))
    scale = gamma / np.sqrt(var + eps)
    shape = (1, -1, 1, 1)
    return np.maximum(0, scale.reshape(shape) * (x - mean.reshape(shape)) + beta.reshape(shape))


def batch_norm_relu_gradients(x, gamma, beta, gy):
    """relu(BN(x)) with the batch's statistics, and its transpose at gy: y, gx, ggamma, gbeta."""
    variables = [chainer.Variable(float64(a)) for a in (x, gamma, beta)]
    y = F.relu(F.batch_normalization(*variables, eps=2e-5))
    y.grad = float64(gy)
    y.backward()
    return y.array, *(variable.grad for variable in variables)


def relative_error(found, expected):
    """Norm of the difference over the norm of what is expected."""
    found, expected = float64(found), float64(expected)
    assert found.shape == expected.shape
    difference = np.linalg.norm(found - expected)
    return difference / max(np.linalg.norm(expected), 1e-30)
