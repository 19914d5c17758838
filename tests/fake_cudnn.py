"""A stand-in for the module ``cudnn``: its graphs compute in NumPy, in float64, on host addresses.

It is as strict as the real one about what the backend relies on: the order of the calls that plan
a graph, NHWC strides, and an aligned address for every tensor with memory and for no other.
"""

import ctypes
import enum
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

data_type = enum.Enum("data_type", "FLOAT HALF NOT_SET")
heur_mode = enum.Enum("heur_mode", "A FALLBACK")
numerical_note = enum.Enum("numerical_note", [
    "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "NONDETERMINISTIC",
    "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13",
])  # fmt: skip
DTYPES = {data_type.FLOAT: np.float32, data_type.HALF: np.float16}
STEPS = ("validate", "build_operation_graph", "create_execution_plans", "check_support")
WORKSPACE = 48


@dataclass(frozen=True)
class Offer:
    """A plan that a graph is offered: what it takes, and by how much its results are off."""

    name: str
    microseconds: float = 10.0
    notes: tuple[str, ...] = ()
    workspace: int = WORKSPACE
    seconds_to_build: float = 0.0
    off: float = 0.0
    builds: bool = True
    runs: bool = True


class cudnnGraphNotSupportedError(RuntimeError):  # noqa: N801, N818 - cudnn-frontend's name
    pass


class Library(SimpleNamespace):
    """What ``import cudnn`` gives; ``graphs`` are those made so far.

    ``unsupported`` is a set of node names: a graph that has all of them has no engine. Every other
    one has the plans ``offers``. What these take is on a clock of the library's own.
    """

    def __init__(self, *unsupported: set[str]) -> None:
        super().__init__(
            data_type=data_type, heur_mode=heur_mode, numerical_note=numerical_note,
            offers=[Offer("eng1_k2=5")], clock=0.0, built=[],
            cudnnGraphNotSupportedError=cudnnGraphNotSupportedError,
            graphs=[], streams=[], destroyed=[], unsupported=unsupported,
        )  # fmt: skip

    def pygraph(self, **options):
        self.graphs.append(Graph(self, **options))
        return self.graphs[-1]

    def create_handle(self):
        return "handle"

    def destroy_handle(self, handle):
        self.destroyed.append(handle)

    def set_stream(self, handle, stream):
        assert handle == "handle"
        self.streams.append(stream)

    def backend_version(self):
        return 92000


class Tensor:
    def __init__(self, dim=None, stride=None, data_type=None, uid=None, compute=None, host=False):
        self.dim, self.stride, self.data_type, self.uid = dim, stride, data_type, uid
        self.compute = compute
        self.host = host
        self.is_output = False

    def memory(self, address):
        """The array at an address, as this tensor describes it."""
        dtype = np.dtype(DTYPES[self.data_type])
        nbytes = int(np.prod(self.dim)) * dtype.itemsize
        buffer = (ctypes.c_char * nbytes).from_address(address)
        strides = [s * dtype.itemsize for s in self.stride]
        return np.ndarray(self.dim, dtype, buffer, strides=strides)


def _setter(name):
    def call(tensor, value):
        setattr(tensor, name, value)
        return tensor

    return call


for _name in ("data_type", "dim", "stride", "uid"):
    setattr(Tensor, f"set_{_name}", _setter(_name))
Tensor.set_output = _setter("is_output")


class Graph:
    def __init__(self, library, *, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert intermediate_data_type == compute_data_type == data_type.FLOAT
        assert handle == "handle"
        self.library = library
        self.io_data_type = io_data_type
        self.tensors = []
        self.nodes = []
        self.steps = []
        self.refused = []
        self.offers = list(library.offers)
        self.selected = None
        self.runs = 0

    def tensor(self, dim, stride, data_type, name, uid, is_pass_by_value=False):
        n, c, h, w = dim
        dense = [c * h * w, 1, c * w, c]
        # The stride of a dimension of one is free.
        fits = [d == 1 or s == e for d, s, e in zip(dim, stride, dense, strict=True)]
        assert all(fits), (dim, stride)
        self.tensors.append(Tensor(dim, stride, data_type, uid, host=is_pass_by_value))
        return self.tensors[-1]

    def _node(self, name, compute):
        self.nodes.append(name)
        self.tensors.append(Tensor(compute=compute))
        return self.tensors[-1]

    def conv_fprop(self, image, weight, padding, stride, dilation):
        assert dilation == [1, 1]
        return self._node("conv_fprop", lambda v: conv(v(image), v(weight), padding, stride))

    def conv_dgrad(self, loss, filter, padding, stride, dilation):
        assert dilation == [1, 1]
        gx = self._node("conv_dgrad", lambda v: dgrad(v(loss), v(filter), gx.dim, padding, stride))
        return gx

    def conv_wgrad(self, image, loss, padding, stride, dilation):
        assert dilation == [1, 1]
        gW = self._node("conv_wgrad", lambda v: wgrad(v(image), v(loss), gW.dim, padding, stride))
        return gW

    def add(self, a, b):
        return self._node("add", lambda v: v(a) + v(b))

    def relu(self, input):
        return self._node("relu", lambda v: np.maximum(v(input), 0))

    def relu_backward(self, loss, input):
        return self._node("relu_backward", lambda v: v(loss) * (v(input) > 0))

    def batchnorm(self, input, scale, bias, in_running_mean, in_running_var, epsilon, momentum):
        def mean(v):
            return v(input).mean(axis=(0, 2, 3), keepdims=True)

        def var(v):
            return v(input).var(axis=(0, 2, 3), keepdims=True)

        def inverse(v):
            return 1 / np.sqrt(var(v) + v(epsilon))

        def y(v):
            return v(scale) * (v(input) - mean(v)) * inverse(v) + v(bias)

        def moved(old, new):
            return lambda v: (1 - v(momentum)) * v(old) + v(momentum) * new(v)

        parts = y, mean, inverse, moved(in_running_mean, mean), moved(in_running_var, var)
        self.tensors += [Tensor(compute=part) for part in parts]
        self.nodes.append("batchnorm")
        for vector in self.tensors[-4:]:
            vector.set_dim(scale.dim).set_stride(scale.stride)
        return self.tensors[-5:]

    def batchnorm_inference(self, input, mean, inv_variance, scale, bias):
        return self._node("batchnorm_inference", lambda v: (
            v(scale) * (v(input) - v(mean)) * v(inv_variance) + v(bias)))  # fmt: skip

    def batchnorm_backward(self, grad, input, scale, mean, inv_variance):
        def total(a):
            return a.sum(axis=(0, 2, 3), keepdims=True)

        def normalised(v):
            return (v(input) - v(mean)) * v(inv_variance)

        def gx(v):
            g, h = v(grad), normalised(v)
            m = g.size / g.shape[1]
            return v(scale) * v(inv_variance) * (g - total(g) / m - h * total(g * h) / m)

        parts = gx, lambda v: total(v(grad) * normalised(v)), lambda v: total(v(grad))
        self.tensors += [Tensor(compute=part) for part in parts]
        self.nodes.append("batchnorm_backward")
        for vector in self.tensors[-2:]:
            vector.set_dim(scale.dim).set_stride(scale.stride)
        return self.tensors[-3:]

    def _step(self, name):
        assert STEPS[len(self.steps)] == name, (name, self.steps)
        self.steps.append(name)

    def validate(self):
        self._step("validate")
        uids = [t.uid for t in self._with_memory()]
        assert None not in uids and len(set(uids)) == len(uids), uids

    def build_operation_graph(self):
        self._step("build_operation_graph")

    def create_execution_plans(self, modes):
        assert modes == [heur_mode.A, heur_mode.FALLBACK]
        self._step("create_execution_plans")

    def deselect_numeric_notes(self, notes):
        assert self.steps[-1] == "create_execution_plans"
        self.refused += [note.name for note in notes]

    def check_support(self):
        self._step("check_support")
        if any(nodes <= set(self.nodes) for nodes in self.library.unsupported):
            raise cudnnGraphNotSupportedError("no engine")

    def get_execution_plan_count(self):
        return len(self.offers)

    def get_plan_name_at_index(self, index):
        return self.offers[index].name

    def build_plan_at_index(self, index):
        assert len(self.steps) == len(STEPS)
        offer = self.offers[index]
        if set(offer.notes) & set(self.refused):
            raise cudnnGraphNotSupportedError("Deselecting execution plan")
        if (self, offer) not in self.library.built:
            self.library.clock += offer.seconds_to_build
            if not offer.builds:
                raise cudnnGraphNotSupportedError("No valid execution plans built")
            self.library.built.append((self, offer))
        self.selected = offer

    def get_workspace_size(self):
        return self.selected.workspace

    def _with_memory(self):
        return [t for t in self.tensors if t.compute is None or t.is_output]

    def execute(self, addresses, workspace, handle):
        assert handle == "handle"
        assert isinstance(workspace, int) and workspace
        memory = {t.uid: t for t in self._with_memory()}
        assert addresses.keys() == memory.keys()
        on_device = [address for uid, address in addresses.items() if not memory[uid].host]
        assert not any(address % 16 for address in on_device), "an address is not aligned"
        if not self.selected.runs:
            raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")
        offer = self.selected
        self.launch(lambda: self._compute(offer, memory, addresses))

    def launch(self, work):
        work()

    def _compute(self, offer, memory, addresses):
        known = {}

        def value(tensor):
            if id(tensor) not in known:
                if tensor.compute is None:
                    array = tensor.memory(addresses[tensor.uid])
                else:
                    array = tensor.compute(value)
                known[id(tensor)] = array.astype(np.float64)
            return known[id(tensor)]

        results = [(t, value(t)) for t in self._with_memory() if t.is_output]
        for tensor, array in results:
            tensor.memory(addresses[tensor.uid])[...] = array * (1 + offer.off)
        self.library.clock += 1e-6 * offer.microseconds
        self.runs += 1


def _windows(x, kernel, padding, stride):
    """The parts of padded x that a kernel is multiplied with, (n, c, h, w, kh, kw); a view."""
    x = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return windows[:, :, :: stride[0], :: stride[1]]


def conv(x, W, padding, stride):
    windows = _windows(x, W.shape[2:], padding, stride)
    return np.tensordot(windows, W, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def wgrad(x, gy, W_dim, padding, stride):
    return np.tensordot(gy, _windows(x, W_dim[2:], padding, stride), ((0, 2, 3), (0, 2, 3)))


def dgrad(gy, W, x_dim, padding, stride):
    (ph, pw), (n, c, h, w) = padding, x_dim
    padded = np.zeros((n, h + 2 * ph, w + 2 * pw, c))
    for i in range(W.shape[2]):
        for j in range(W.shape[3]):
            rows = slice(i, i + stride[0] * gy.shape[2], stride[0])
            columns = slice(j, j + stride[1] * gy.shape[3], stride[1])
            padded[:, rows, columns] += np.tensordot(gy, W[:, :, i, j], (1, 0))
    return padded[:, ph : ph + h, pw : pw + w].transpose(0, 3, 1, 2)


class HostArrays:
    """NumPy in CuPy's place, with what the backend takes from ``cupy.cuda``."""

    def __init__(self, clock=lambda: 0.0):
        self.stream, self.capturing = 7, False
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(
                ptr=self.stream, is_capturing=lambda: self.capturing
            ),
            alloc=self._alloc,
            Device=lambda: SimpleNamespace(synchronize=lambda: None),
            Event=self._event,
            get_elapsed_time=lambda first, last: 1e3 * (last.time - first.time),
        )
        self.allocated = []
        self._clock = clock

    def _event(self):
        assert not self.capturing
        event = SimpleNamespace(synchronize=lambda: None)
        event.record = lambda: setattr(event, "time", self._clock())
        return event

    def _alloc(self, nbytes):
        self.allocated.append(np.empty(nbytes, np.uint8))
        return SimpleNamespace(ptr=self.allocated[-1].ctypes.data)

    def __getattr__(self, name):
        return getattr(np, name)
