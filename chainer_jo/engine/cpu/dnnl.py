"""oneDNN's C interface through ctypes: the library, memory descriptors, primitives."""

from __future__ import annotations

import ctypes
import os
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import partial
from pathlib import Path

import numpy

from chainer_jo.engine.cpu.buffers import Buffers
from chainer_jo.engine.interface import Unavailable

OLDEST = (3, 2)
PACKAGE = "onednn-cpu-gomp"
#: Library name for the system's loader.
SYSTEM = "libdnnl.3.dylib" if sys.platform == "darwin" else "libdnnl.so.3"
#: GNU's OpenMP, a system library that slim container images lack.
OPENMP = "libgomp.so.1"

# Values of dnnl_types.h and dnnl_common_types.h; they are the same in every 3.x.
BF16, F32 = 2, 3
FORWARD_TRAINING, FORWARD_INFERENCE, BACKWARD = 64, 96, 128
CONVOLUTION_DIRECT = 0x1
BINARY_ADD = 0x1FFF0
USE_GLOBAL_STATISTICS, USE_SCALE, USE_SHIFT, FUSE_RELU = 0x1, 0x2, 0x4, 0x8
SRC, SRC_1, DST, WEIGHTS, MEAN, VARIANCE, SCALE, SHIFT, WORKSPACE = 1, 2, 17, 33, 49, 50, 51, 52, 64
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_SCALE, DIFF_SHIFT = 129, 145, 161, 255, 256
SCRATCHPAD = 80
FIRST_POST_OP_SRC_1 = 32768 | SRC_1
QUERY_IMPLEMENTATION, QUERY_WEIGHTS, QUERY_DIFF_WEIGHTS = 8, 131, 132
QUERY_WORKSPACE, QUERY_SCRATCHPAD = 135, 136
#: Bits of `Library.instructions`.
AVX512_INSTRUCTIONS, BFLOAT16_INSTRUCTIONS, AMX_INSTRUCTIONS = 0x20, 0x80, 0xE00
_FORMAT_ANY, _CPU, _IN_ORDER, _OPENMP, _OWN_SCRATCHPAD = 1, 1, 1, 2, 1
_MAX_DIMS = 12
_STATUS = {
    1: "out of memory",
    2: "invalid arguments",
    3: "not implemented",
    5: "runtime error",
    6: "not required",
}


class DnnlError(RuntimeError):
    """Error status of a oneDNN call."""


class _Version(ctypes.Structure):
    _fields_ = [
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    ]


class _Argument(ctypes.Structure):
    _fields_ = [("index", c_int), ("memory", c_void_p)]


class Owned(c_void_p):
    """Pointer that owns an object of oneDNN, and destroys it."""

    #: Function that destroys the object; None until there is one.
    _destroy: Callable[[c_void_p], int] | None = None
    #: Reference to the engine, which has to outlive its objects.
    _engine: c_void_p | None = None

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self)


class Library:
    """A loaded libdnnl with a CPU engine and a stream.

    Raises Unavailable if the file is not a oneDNN of version 3.2 or later with OpenMP threads.
    """

    def __init__(self, path: str) -> None:
        # Spinning threads take time from the threads they wait for. GNU's OpenMP reads this once,
        # as it is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            self._lib = ctypes.CDLL(path)
            # Short calls are cheaper without releasing the interpreter's lock.
            quick = ctypes.PyDLL(path)
            self._lib.dnnl_version.restype = ctypes.POINTER(_Version)
            version = self._lib.dnnl_version().contents
        except (OSError, AttributeError) as error:
            raise Unavailable(f"{path} cannot be loaded as oneDNN ({error})") from error
        self.path = path
        self.version = (version.major, version.minor, version.patch)
        if self.version[:2] < OLDEST:
            raise Unavailable(
                f"{path} is oneDNN {version.major}.{version.minor}, "
                f"older than {OLDEST[0]}.{OLDEST[1]}"
            )
        if version.cpu_runtime != _OPENMP:
            raise Unavailable(f"{path} is a oneDNN that does not use OpenMP threads")
        self._lib.dnnl_primitive_desc_query_md.restype = c_void_p
        self._lib.dnnl_memory_desc_get_size.restype = c_size_t
        self.execute = self._lib.dnnl_primitive_execute
        self.execute.argtypes = [c_void_p, c_void_p, c_int, c_void_p]
        self.execute.restype = _done
        self.set_address = quick.dnnl_memory_set_data_handle
        self.set_address.argtypes = [c_void_p, c_void_p]
        #: Recorded calls, or None without recording; see `perform`.
        self.calls: list[Callable[[], object]] | None = None
        self.engine = None
        self.engine = self.create("dnnl_engine_create", c_int(_CPU), c_size_t(0))
        self.stream = self.create("dnnl_stream_create", self.engine, c_uint(_IN_ORDER))

    def threads(self) -> int:
        """Number of threads of the primitives that this Python thread creates from now on."""
        return self._lib.omp_get_max_threads()

    def perform(self, call: Callable[[], object]) -> None:
        """Calls, and records the call if there is a recording."""
        call()
        if self.calls is not None:
            self.calls.append(call)

    def instructions(self) -> int:
        """Bits of the instructions that oneDNN uses here, within ONEDNN_MAX_CPU_ISA."""
        return self._lib.dnnl_get_effective_cpu_isa()

    def strided(self, shape: Sequence[int], strides: Sequence[int], data_type: int) -> Owned:
        """Memory descriptor of an array; strides in elements."""
        return self.create(
            "dnnl_memory_desc_create_with_strides",
            c_int(len(shape)),
            dims(shape),
            c_int(data_type),
            dims(strides),
        )

    def any_layout(self, shape: Sequence[int], data_type: int) -> Owned:
        """Memory descriptor that leaves the layout to the primitive."""
        return self.create(
            "dnnl_memory_desc_create_with_tag",
            c_int(len(shape)),
            dims(shape),
            c_int(data_type),
            c_int(_FORMAT_ANY),
        )

    def size(self, descriptor: c_void_p) -> int:
        """Size of a memory descriptor in bytes."""
        return self._lib.dnnl_memory_desc_get_size(descriptor)

    def descriptor_of(self, primitive_desc: c_void_p, query: int) -> Owned:
        """Memory descriptor that a primitive has chosen for an argument."""
        layout = c_void_p(self._lib.dnnl_primitive_desc_query_md(primitive_desc, c_int(query), 0))
        return self.create("dnnl_memory_desc_clone", layout)

    def implementation(self, primitive_desc: c_void_p) -> str:
        """Name of the chosen implementation."""
        name = c_char_p()
        self._lib.dnnl_primitive_desc_query(
            primitive_desc, c_int(QUERY_IMPLEMENTATION), 0, byref(name)
        )
        return (name.value or b"").decode()

    def move_on(self, primitive_desc: c_void_p) -> bool:
        """Moves a primitive descriptor to oneDNN's next implementation; False if there is none.

        The forward pass's descriptor, from which a gradient's was made, has to exist still.
        """
        return self._lib.dnnl_primitive_desc_next_impl(primitive_desc) == 0

    def adding(self, descriptor: c_void_p) -> Owned:
        """Attributes for adding an array, FIRST_POST_OP_SRC_1, to a primitive's result."""
        operations = self.create("dnnl_post_ops_create")
        self._call("dnnl_post_ops_append_binary", operations, c_int(BINARY_ADD), descriptor)
        attributes = self._attributes()
        self._call("dnnl_primitive_attr_set_post_ops", attributes, operations)
        return attributes

    def _attributes(self) -> Owned:
        """Attributes for a scratchpad as an argument: oneDNN's own belongs to the thread that made
        the primitive, and another thread crashes."""
        attributes = self.create("dnnl_primitive_attr_create")
        self._call("dnnl_primitive_attr_set_scratchpad_mode", attributes, c_int(_OWN_SCRATCHPAD))
        return attributes

    def describe(self, kind: str, *arguments) -> Owned:
        """Primitive descriptor of a kind, from the arguments after the engine; the last argument
        are attributes or None."""
        *others, attributes = arguments
        attributes = self._attributes() if attributes is None else attributes
        return self.create(f"dnnl_{kind}_primitive_desc_create", self.engine, *others, attributes)

    def describe_reorder(self, source: c_void_p, target: c_void_p) -> Owned:
        """Primitive descriptor of a change of layout or data type."""
        return self.create(
            "dnnl_reorder_primitive_desc_create",
            source, self.engine, target, self.engine, self._attributes(),
        )  # fmt: skip

    def create(self, function: str, *arguments) -> Owned:
        """Object that a oneDNN function creates in its first argument, from the other arguments.

        oneDNN copies what it needs, so that arguments can be destroyed (except in `move_on`).
        """
        result = Owned()
        self._call(function, byref(result), *arguments)
        made = re.split("_create|_clone", function)[0]
        if made.endswith("_primitive_desc"):
            made = "dnnl_primitive_desc"
        result._destroy = getattr(self._lib, f"{made}_destroy")
        result._engine = self.engine
        return result

    def _call(self, function: str, *arguments) -> None:
        status = getattr(self._lib, function)(*arguments)
        if status:
            raise DnnlError(f"{function}: {_STATUS.get(status, status)}")


class Primitive:
    """A primitive with everything fixed except addresses: `primitive(*addresses)` runs it.

    Parameters
    ----------
    arguments : per argument its index (SRC, DST, ...), memory descriptor and, if fixed, address.
        The other addresses are passed, in this order, to each call.
    """

    def __init__(self, library: Library, primitive_desc: c_void_p, *arguments: tuple) -> None:
        self.implementation = library.implementation(primitive_desc)
        self._library = library
        self._primitive = library.create("dnnl_primitive_create", primitive_desc)
        self._arguments = arguments
        scratchpad = library.descriptor_of(primitive_desc, QUERY_SCRATCHPAD)
        if size := library.size(scratchpad):
            # Zeros: kernels add to it, and never write bfloat16 gradients of weights that only
            # meet padding.
            self._scratchpad = Buffers().empty((size,), numpy.dtype(numpy.uint8))
            self._scratchpad[...] = 0
            self._arguments += ((SCRATCHPAD, scratchpad, self._scratchpad.ctypes.data),)
        self._memories, self._execute = self._prepared()

    def _prepared(self) -> tuple[list[Owned], Callable[[], object]]:
        """Memories whose addresses are set later, and a call with all memories."""
        library = self._library
        slots = (_Argument * len(self._arguments))()
        given, kept = [], []
        for slot, (index, descriptor, *fixed) in zip(slots, self._arguments, strict=True):
            address = c_void_p(fixed[0] if fixed else None)
            memory = library.create("dnnl_memory_create", descriptor, library.engine, address)
            slot.index, slot.memory = index, memory.value
            kept.append(memory)
            if not fixed:
                given.append(memory)
        slots.kept = kept  # type: ignore[attr-defined]  # ctypes lets arrays have attributes
        return given, partial(library.execute, self._primitive, library.stream, len(slots), slots)

    def __call__(self, *addresses: int) -> None:
        library, memories, execute = self._library, self._memories, self._execute
        if library.calls is not None:
            memories, execute = self._prepared()
        for memory, address in zip(memories, addresses, strict=True):
            library.set_address(memory, address)
        library.perform(execute)


def find() -> Library:
    """Newest oneDNN installed as a package, or else the system's.

    Packages of the Python environment come first, then packages of the Python below it and of the
    user, if the environment has access. Raises Unavailable with the reason for each candidate.
    """
    # sys.prefix, but not on Debian; and below the Python that an environment is laid over.
    folders = [sysconfig.get_path("data"), *site.PREFIXES]
    if site.ENABLE_USER_SITE:
        folders.append(site.getuserbase())
    names = "libdnnl.[s3]*"  # libdnnl.so.3, or libdnnl.3.dylib on macOS
    candidates = [path for folder in folders for path in Path(folder, "lib").glob(names)]
    newest_first = sorted((path.resolve() for path in candidates), key=_version_in, reverse=True)
    reasons = []
    for path in [*dict.fromkeys(map(str, newest_first)), SYSTEM]:
        try:
            return Library(path)
        except Unavailable as error:
            reasons.append(str(error))
    if any(f"{OPENMP}: cannot open" in reason for reason in reasons):
        reasons.append("the system lacks GNU's OpenMP, Debian's and Ubuntu's libgomp1")
    raise Unavailable(f"no usable oneDNN (package {PACKAGE}, extra cpu): {'; '.join(reasons)}")


def _version_in(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.name))


def _done(status: int) -> None:
    if status:
        raise DnnlError(f"dnnl_primitive_execute: {_STATUS.get(status, status)}")


def dims(values: Sequence[int]) -> ctypes.Array:
    """Lengths, strides or paddings as a oneDNN array."""
    return (c_int64 * _MAX_DIMS)(*values)
