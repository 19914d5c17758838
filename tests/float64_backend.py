"""A backend in float64 NumPy that is told which units ReLU lets through.

The gradient of a deep network of ReLUs jumps where an input of one crosses 0, so two computations
whose rounding differs may have gradients that have little to do with each other. With the active
units of the one given to the other, what is left is the error of the arithmetic.
"""

import numpy as np
from float64_functions import conv2d, conv2d_gradients

from chainer_jo.engine.interface import EPS, Backend


class Float64(Backend):
    """`active`: for each `batch_norm_relu` in the order of calls, bool (n, c, h, w)."""

    name = "float64"
    precision = "float64"

    def __init__(self, active):
        self._active = iter(active)

    def as_activation(self, x):
        return np.float64(x)

    def to_float32(self, x):
        return x

    def conv2d(self, x, W, stride, pad, residual):
        y = conv2d(x, W, stride, pad)
        return y if residual is None else y + residual

    def conv2d_grad_input(self, gy, W, x_shape, stride, pad, accumulate):
        gx, _ = conv2d_gradients(np.zeros(x_shape), W, gy, stride, pad)
        return gx if accumulate is None else gx + accumulate

    def conv2d_grad_weight(self, x, gy, W_shape, stride, pad):
        return conv2d_gradients(x, np.zeros(W_shape), gy, stride, pad)[1]

    def batch_norm_relu_train(self, x, gamma, beta):
        mean, var = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
        inverse_std = (var + EPS) ** -0.5
        x_hat = (x - _expand(mean)) * _expand(inverse_std)
        active = next(self._active)
        y = (_expand(np.float64(gamma)) * x_hat + _expand(np.float64(beta))) * active
        return y, mean, var, (x_hat, inverse_std, active)

    def batch_norm_relu_test(self, x, gamma, beta, mean, var):
        raise AssertionError("this backend is for training")

    def batch_norm_relu_grad(self, x, y, gamma, gy, saved, accumulate):
        x_hat, inverse_std, active = saved
        gz = gy * active
        gbeta, ggamma = gz.sum(axis=(0, 2, 3)), (gz * x_hat).sum(axis=(0, 2, 3))
        samples = x.size / x.shape[1]
        centred = gz - (_expand(gbeta) + x_hat * _expand(ggamma)) / samples
        gx = _expand(gamma * inverse_std) * centred
        return (gx if accumulate is None else gx + accumulate), ggamma, gbeta


def _expand(vector):
    return vector[None, :, None, None]
