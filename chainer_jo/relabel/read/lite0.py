"""EfficientNet-Lite0 up to its pooled features, on NumPy or CuPy.

Arrays are (c, h, w, n), images last, so that every convolution is a matrix product: a 1x1
convolution multiplies (o, c) by (c, h w n). A depthwise one multiplies, for each channel and row of
the output, a band matrix (w', k w) that holds the kernel once for every column of the output, by
the k rows of the input below it (k w, n). Batch normalisation is folded into the weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: Length of a feature vector.
FEATURES = 1280
#: Images are made to (x - MEAN) / STD.
MEAN, STD = 127.0, 128.0
#: Sides of images are multiples of it: the network halves them five times.
HALVINGS = 32
#: Of the 16 blocks, those that halve their input.
HALVING_BLOCKS = 1, 3, 5, 11
BLOCKS = 16
EPS = 1e-3


class Convolution(NamedTuple):
    """Weights of a convolution with batch normalisation folded in.

    Attributes
    ----------
    weights : float32 (o, c), or the band matrices of a depthwise one, see `_bands`.
    bias : float32 (o, 1, 1, 1).
    """

    weights: Any
    bias: Any


class Block(NamedTuple):
    """An inverted residual block. ``expand`` is None in the first one; ``kernel`` is the side of
    the depthwise kernel."""

    expand: Convolution | None
    depthwise: Convolution
    kernel: int
    stride: int
    project: Convolution


class Lite0:
    """The network for images of one size.

    Parameters
    ----------
    arrays : by PyTorch's names, see `lite0_weights.load`.
    side : height and width of images, a multiple of `HALVINGS`.
    xp : NumPy or CuPy.
    """

    def __init__(self, arrays: dict[str, np.ndarray], side: int, xp: Any = np) -> None:
        def convolution(name: str, norm: str, width: int = 0, stride: int = 1) -> Convolution:
            scale = arrays[f"{norm}.weight"] / np.sqrt(arrays[f"{norm}.running_var"] + EPS)
            bias = arrays[f"{norm}.bias"] - arrays[f"{norm}.running_mean"] * scale
            weights = arrays[f"{name}.weight"] * scale[:, None, None, None]
            weights = _bands(weights[:, 0], width, stride) if width else _flat(weights)
            return Convolution(
                xp.asarray(weights, np.float32), xp.asarray(bias[:, None, None, None], np.float32)
            )

        self.xp, self.side = xp, side
        self.stem = convolution("_conv_stem", "_bn0")
        self.blocks, side = [], side // 2
        for i in range(BLOCKS):
            name, stride = f"_blocks.{i}", 2 if i in HALVING_BLOCKS else 1
            expands = f"{name}._expand_conv.weight" in arrays
            block = Block(
                convolution(f"{name}._expand_conv", f"{name}._bn0") if expands else None,
                convolution(f"{name}._depthwise_conv", f"{name}._bn1", side, stride),
                arrays[f"{name}._depthwise_conv.weight"].shape[-1],
                stride,
                convolution(f"{name}._project_conv", f"{name}._bn2"),
            )
            self.blocks.append(block)
            side //= stride
        self.head = convolution("_conv_head", "_bn1")

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Features float32 (n, 1280) of RGB images uint8 (n, side, side, 3)."""
        xp = self.xp
        x = (xp.asarray(images).transpose(3, 1, 2, 0).astype(np.float32) - MEAN) / STD
        h = self._activated(self.stem, self._multiplied(self.stem, self._patches(x)))
        for block in self.blocks:
            x = h
            if block.expand:
                h = self._activated(block.expand, self._multiplied(block.expand, h))
            h = xp.matmul(block.depthwise.weights, self._rows(h, block.kernel, block.stride))
            h = self._activated(block.depthwise, h)
            h = self._multiplied(block.project, h)
            h += block.project.bias
            if h.shape == x.shape:
                h += x
        h = self._activated(self.head, self._multiplied(self.head, h))
        features = h.mean(axis=(1, 2)).T
        return np.ascontiguousarray(features if xp is np else features.get())

    def _multiplied(self, convolution: Convolution, x: Any) -> Any:
        """1x1 convolution without its bias."""
        weights = convolution.weights
        return (weights @ x.reshape(len(x), -1)).reshape(len(weights), *x.shape[1:])

    def _activated(self, convolution: Convolution, x: Any) -> Any:
        """ReLU6 of x + bias, in place."""
        x += convolution.bias
        return self.xp.clip(x, 0, 6, out=x)

    def _patches(self, x: Any) -> Any:
        """Patches of 3x3 pixels with stride 2 as channels (c 9, h / 2, w / 2, n)."""
        padded, half = self._padded(x, 3, 2), x.shape[1] // 2
        shifted = [
            padded[:, i : i + 2 * half : 2, j : j + 2 * half : 2]
            for i in range(3)
            for j in range(3)
        ]
        return self.xp.stack(shifted, axis=1).reshape(-1, half, half, x.shape[-1])

    def _rows(self, x: Any, kernel: int, stride: int) -> Any:
        """The ``kernel`` rows, one after the other, below each row of the output: a view (c, h',
        kernel w, n) of the padded input."""
        padded = self._padded(x, kernel, stride)
        c, _, width, n = padded.shape
        by_channel, by_row, by_column, by_image = padded.strides
        return self.xp.lib.stride_tricks.as_strided(
            padded,
            (c, x.shape[1] // stride, kernel * width, n),
            (by_channel, stride * by_row, by_column, by_image),
        )

    def _padded(self, x: Any, kernel: int, stride: int) -> Any:
        """Zeros around images as TensorFlow pads an even side: the odd one comes last."""
        c, h, w, n = x.shape
        first = (kernel - stride) // 2
        padded = self.xp.zeros((c, h + kernel - stride, w + kernel - stride, n), np.float32)
        padded[:, first : first + h, first : first + w] = x
        return padded


def _flat(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(len(weights), -1)


def _bands(kernels: np.ndarray, width: int, stride: int) -> np.ndarray:
    """Band matrices (c, 1, w', k (w + k - stride)) of kernels (c, k, k) on images w wide."""
    c, k, _ = kernels.shape
    bands = np.zeros((c, width // stride, k, width + k - stride), np.float32)
    for column in range(width // stride):
        bands[:, column, :, column * stride : column * stride + k] = kernels
    return bands.reshape(c, 1, width // stride, -1)
