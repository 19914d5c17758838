"""Convolution and gradients in float64 by Chainer, batch normalisation from its definition."""

import chainer
import chainer.functions as F
import numpy as np


def conv2d(x, W, stride, pad):
    return F.convolution_2d(np.float64(x), np.float64(W), None, stride, pad).array


def conv2d_gradients(x, W, gy, stride, pad):
    """gx and gW, the transposes of the linear maps x -> y and W -> y applied to gy."""
    x, W = (chainer.Variable(np.float64(a)) for a in (x, W))
    with chainer.using_config("enable_backprop", True):  # within another's backward pass, too
        y = F.convolution_2d(x, W, None, stride, pad)
    y.grad = np.float64(gy)
    y.backward()
    return x.grad, W.grad


def batch_norm_relu(x, gamma, beta, mean, var, eps):
    """relu(gamma (x - mean) / sqrt(var + eps) + beta)."""
    x, gamma, beta, mean, var = (np.float64(a) for a in (x, gamma, beta, mean, var))
    scale = gamma / np.sqrt(var + eps)
    shape = (1, -1, 1, 1)
    return np.maximum(0, scale.reshape(shape) * (x - mean.reshape(shape)) + beta.reshape(shape))


def batch_norm_relu_gradients(x, gamma, beta, gy):
    """relu(BN(x)) with the batch's statistics, and its transpose at gy: y, gx, ggamma, gbeta."""
    variables = [chainer.Variable(np.float64(a)) for a in (x, gamma, beta)]
    y = F.relu(F.batch_normalization(*variables, eps=2e-5))
    y.grad = np.float64(gy)
    y.backward()
    return y.array, *(variable.grad for variable in variables)


def relative_error(found, expected):
    """Norm of the difference over the norm of what is expected."""
    found, expected = np.float64(found), np.float64(expected)
    assert found.shape == expected.shape
    difference = np.linalg.norm(found - expected)
    return difference / max(np.linalg.norm(expected), 1e-30)
