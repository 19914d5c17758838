"""A stand-in for CuPy on a machine without a GPU: arrays in host memory, kernels compiled by g++.

On the path before any other CuPy it lets whole programs be rehearsed. It is at least as strict as
the real one about what matters here: NumPy arrays do not mix with the device's, nothing is read
back while a stream captures, cuBLAS is not captured, and subnormal numbers are zero. What a stream
captures is not done but recorded, kernel by kernel, and done when the graph is launched.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy

sys.path.append(str(Path(__file__).resolve().parents[2]))

import subnormals  # noqa: E402

_flushed = subnormals.flushed()
_flushed.__enter__()

__version__ = "14.2.0"

from cupy import cuda  # noqa: E402

bool_, int8, int32, int64, uint8 = (
    numpy.bool_, numpy.int8, numpy.int32, numpy.int64, numpy.uint8,
)  # fmt: skip
float16, float32, float64, dtype = numpy.float16, numpy.float32, numpy.float64, numpy.dtype
inf, nan, newaxis = numpy.inf, numpy.nan, None


def launch(name, work) -> None:
    """Does the work of a kernel, or records it where a stream captures."""
    if cuda.recording is None:
        work()
    else:
        cuda.recording.append((name, work))


def _raw(value):
    """What NumPy is given for an argument."""
    if isinstance(value, ndarray):
        return value._a
    if isinstance(value, numpy.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_raw, value))
    return value


def _arrays(values):
    for value in values:
        if isinstance(value, numpy.ndarray):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _arrays(value)


def _call(name, function, *args, **kwargs):
    """A NumPy function of device arrays: a view of one of them, or a kernel's new array."""
    args = _raw(args)
    out = kwargs.pop("out", None)
    kwargs = {key: _raw(value) for key, value in kwargs.items()}
    if out is not None:
        launch(name, lambda: function(*args, out=out._a, **kwargs))
        return out
    result = numpy.asarray(function(*args, **kwargs))
    if any(numpy.may_share_memory(result, a) for a in _arrays(args)):
        return ndarray(result)
    result = result if result.base is None else result.copy(order="K")
    if cuda.recording is not None:
        cuda.recording.append((name, lambda: numpy.copyto(result, function(*args, **kwargs))))
    return ndarray(result)


class ndarray:  # noqa: N801 - CuPy's name
    """An array on the device."""

    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, a) -> None:
        self._a = a
        if cuda.recording is not None:
            cuda.recording.kept.append(a)

    shape = property(lambda self: self._a.shape)
    dtype = property(lambda self: self._a.dtype)
    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    nbytes = property(lambda self: self._a.nbytes)
    itemsize = property(lambda self: self._a.itemsize)
    strides = property(lambda self: self._a.strides)
    flags = property(lambda self: self._a.flags)
    base = property(lambda self: self._a.base)
    device = property(lambda self: cuda.Device())
    data = property(lambda self: SimpleNamespace(ptr=self._a.ctypes.data))
    T = property(lambda self: ndarray(self._a.T))

    def get(self, *_args, **_kwargs):
        cuda.needs_no_capture("D2H transfers")
        return self._a.copy()

    def set(self, array) -> None:
        cuda.needs_no_capture("H2D transfers")
        if not isinstance(array, numpy.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != array.dtype or self.shape != array.shape:
            raise ValueError(f"{array.dtype} {array.shape} set to {self.dtype} {self.shape}")
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._a[...] = array

    def __array_function__(self, function, _types, args, kwargs):
        return getattr(sys.modules[__name__], function.__name__)(*args, **kwargs)

    def __array__(self, *_args, **_kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __len__(self):
        return len(self._a)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        return bool(self.get())

    def __float__(self):
        return float(self.get())

    def __int__(self):
        return int(self.get())

    def item(self):
        return self.get().item()

    def tolist(self):
        return self.get().tolist()

    def __getitem__(self, key):
        key = _raw(key)
        if any(a.dtype == bool for a in _arrays([key])):
            cuda.needs_no_capture("D2H transfers")
        if all(isinstance(k, int) for k in (key if isinstance(key, tuple) else (key,))):
            key = (*key, ...) if isinstance(key, tuple) else (key, ...)  # a view, though of one
        return _call("take", lambda a: a[key], self)

    def __setitem__(self, key, value):
        key, value = _raw(key), _raw(value)

        def assign():
            self._a[key] = value

        launch("copy", assign)

    def fill(self, value):
        self[...] = value

    def astype(self, dtype, order="K", copy=True):
        return _call("astype", lambda a: a.astype(dtype, order=order, copy=copy), self)

    def reshape(self, *shape):
        return _call("reshape", lambda a: a.reshape(*shape), self)

    def transpose(self, *axes):
        return ndarray(self._a.transpose(*axes))

    def dot(self, other):
        return dot(self, other)

    def __matmul__(self, other):
        return dot(self, other)


def _method(name):
    function = getattr(numpy, name)
    return lambda self, *args, **kwargs: _call(name, function, self, *args, **kwargs)


def _operator(ufunc, reflected=False, in_place=False):
    def operator(self, other):
        if not isinstance(other, (ndarray, int, float, numpy.generic)):
            if isinstance(other, numpy.ndarray):
                raise TypeError(f"Unsupported type {type(other)}")
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        return _call(ufunc.__name__, ufunc, *pair, **({"out": self} if in_place else {}))

    return operator


for _name in ("sum", "mean", "max", "min", "argmax", "argsort", "var", "any", "all", "ravel",
              "squeeze", "copy", "prod", "cumsum", "take"):  # fmt: skip
    setattr(ndarray, _name, _method(_name))
for _name, _ufunc in {
    "add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "truediv": numpy.true_divide,
    "pow": numpy.power, "mod": numpy.mod, "floordiv": numpy.floor_divide, "and": numpy.bitwise_and,
    "or": numpy.bitwise_or,
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))
    setattr(ndarray, f"__r{_name}__", _operator(_ufunc, reflected=True))
    setattr(ndarray, f"__i{_name}__", _operator(_ufunc, in_place=True))
for _name, _ufunc in {
    "eq": numpy.equal, "ne": numpy.not_equal, "lt": numpy.less, "le": numpy.less_equal,
    "gt": numpy.greater, "ge": numpy.greater_equal,
}.items():  # fmt: skip
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))
ndarray.__neg__ = lambda self: _call("negative", numpy.negative, self)
ndarray.__invert__ = lambda self: _call("invert", numpy.invert, self)
ndarray.__abs__ = lambda self: _call("absolute", numpy.absolute, self)


def dot(a, b):
    if cuda.recording is not None:
        raise NotImplementedError(
            "calling cuBLAS API during stream capture is currently unsupported"
        )
    return _call("cublas", numpy.dot, a, b)


matmul = dot


def _new(name):
    """A function that makes an array from nothing; fresh memory is poisoned."""

    def make(shape, *args, **kwargs):
        if name == "empty":
            array = numpy.empty(shape, *args, **kwargs)
            array.view(numpy.uint8)[...] = 0xFF if array.ndim and array.size else 0
            return ndarray(array)
        return _call(name, lambda: getattr(numpy, name)(shape, *args, **kwargs))

    return make


empty, zeros, ones, full = map(_new, ("empty", "zeros", "ones", "full"))


def empty_like(a, dtype=None):
    return empty(a.shape, dtype or a.dtype)


def asarray(a, dtype=None, **_kwargs):
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    cuda.needs_no_capture("H2D transfers")
    return ndarray(numpy.array(a, dtype))


def array(a, dtype=None, copy=True, **_kwargs):
    return asarray(a, dtype).copy() if isinstance(a, ndarray) else asarray(a, dtype)


def asnumpy(a, *_args):
    return a.get() if isinstance(a, ndarray) else numpy.asarray(a)


def copyto(target, source):
    target[...] = source


def ascontiguousarray(a, dtype=None):
    return a.astype(dtype or a.dtype, order="C", copy=False)


def get_array_module(*args):
    return sys.modules[__name__] if any(isinstance(a, ndarray) for a in args) else numpy


def memoize(for_each_device=False):
    return functools.cache


def clear_memo():
    """Nothing: see `memoize`."""


def fuse(*_args, **_kwargs):
    return lambda function: function


def get_default_memory_pool():
    return cuda.MemoryPool()


get_default_pinned_memory_pool = get_default_memory_pool


def _compiled():
    import cuda_on_cpu

    return cuda_on_cpu


class RawModule:
    """CUDA source."""

    def __init__(self, code):
        self._module = _compiled().RawModule(code, cuda.KERNELS)

    def get_function(self, name):
        function = self._module.get_function(name)

        def call(grid, block, arguments, **_kwargs):
            # A structure that is an argument is read now, an array when the kernel runs.
            raw = [a._a if isinstance(a, ndarray) else a for a in arguments]
            launch(name, lambda: function(grid, block, raw))

        return call


def RawKernel(code, name):  # noqa: N802 - CuPy's name
    return RawModule(code).get_function(name)


class ElementwiseKernel:
    """A kernel from its parameters and the body of its loop."""

    def __init__(self, inputs, outputs, body, name, **_kwargs):
        self._source = inputs, outputs, body
        self._name = name
        self._types = [p.split()[0] for p in f"{inputs}, {outputs}".split(", ")]
        self._inputs = len(inputs.split(", "))

    def __call__(self, *args):
        raw = _raw(args)
        kind = next((a.dtype for a, t in zip(raw, self._types, strict=False) if t == "T"), float32)
        kernel = _kernel(*self._source, numpy.dtype(kind))
        if len(raw) > self._inputs:
            launch(self._name, lambda: kernel(*raw))
            return None
        results = kernel(*raw)
        tuples = results if isinstance(results, tuple) else (results,)
        if cuda.recording is not None:

            def again():
                fresh = kernel(*raw)
                for a, b in zip(tuples, fresh if len(tuples) > 1 else (fresh,), strict=True):
                    numpy.copyto(a, b)

            cuda.recording.append((self._name, again))
        return tuple(map(ndarray, tuples)) if len(tuples) > 1 else ndarray(results)


@functools.cache
def _kernel(inputs, outputs, body, kind):
    return _compiled().elementwise(cuda.KERNELS, inputs, outputs, body, kind)


class random:  # noqa: N801 - a module of CuPy's
    @staticmethod
    def random(size):
        return asarray(numpy.random.default_rng(0).random(size))

    @staticmethod
    def standard_normal(size, dtype=float):
        return asarray(numpy.random.default_rng(0).standard_normal(size), dtype)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return functools.partial(_call, name, getattr(numpy, name))
