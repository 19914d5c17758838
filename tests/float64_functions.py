"""Convolution and batch normalisation in plain float64 NumPy, written from their definitions."""

import numpy as np


def conv2d(x, W, stride, pad):
    """y[n, o, i, j] = sum over c, k, l of W[o, c, k, l] x[n, c, stride i + k - pad, ...]."""
    x, W = np.float64(x), np.float64(W)
    kh, kw = W.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    h, w = (
        (length + 2 * pad - k) // stride + 1
        for length, k in zip(x.shape[2:], W.shape[2:], strict=True)
    )
    y = np.zeros((len(x), len(W), h, w))
    for k in range(kh):
        for m in range(kw):
            rows = slice(k, k + stride * (h - 1) + 1, stride)
            columns = slice(m, m + stride * (w - 1) + 1, stride)
            y += np.einsum(
                "nchw,oc->nohw", padded[:, :, rows, columns], W[:, :, k, m], optimize=True
            )
    return y


def conv2d_gradients(x, W, gy, stride, pad):
    """gx and gW, the transposes of the linear maps x -> y and W -> y applied to gy."""
    x, W, gy = np.float64(x), np.float64(W), np.float64(gy)
    kh, kw = W.shape[2:]
    h, w = gy.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    gpadded, gW = np.zeros_like(padded), np.zeros_like(W)
    for k in range(kh):
        for m in range(kw):
            rows = slice(k, k + stride * (h - 1) + 1, stride)
            columns = slice(m, m + stride * (w - 1) + 1, stride)
            gW[:, :, k, m] = np.einsum(
                "nchw,nohw->oc", padded[:, :, rows, columns], gy, optimize=True
            )
            gpadded[:, :, rows, columns] += np.einsum(
                "nohw,oc->nchw", gy, W[:, :, k, m], optimize=True
            )
    end_h, end_w = (length + pad for length in x.shape[2:])
    return gpadded[:, :, pad:end_h, pad:end_w], gW


def batch_norm_relu(x, gamma, beta, mean, var, eps):
    """relu(gamma (x - mean) / sqrt(var + eps) + beta)."""
    x, gamma, beta, mean, var = (np.float64(a) for a in (x, gamma, beta, mean, var))
    scale = gamma / np.sqrt(var + eps)
    shape = (1, -1, 1, 1)
    return np.maximum(0, scale.reshape(shape) * (x - mean.reshape(shape)) + beta.reshape(shape))


def relative_error(found, expected):
    """Norm of the difference over the norm of what is expected."""
    expected = np.float64(expected)
    difference = np.linalg.norm(np.float64(found) - expected)
    return difference / max(np.linalg.norm(expected), 1e-30)
