"""Own kernels among cuDNN's plans: compared with cuDNN, timed, stored by name, used if fastest."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cudnn import HostArrays, Library, Offer, conv

from chainer_jo.engine.cuda import candidates, cudnn, cudnn_library
from chainer_jo.engine.cuda.candidates import OWN, TOLERANCE, Candidate, difference
from chainer_jo.engine.cuda.cudnn import CuDNN
from chainer_jo.engine.cuda.cudnn_choices import NAME, Choices

HERE = "H100, cuDNN 9.28.0"
CUDNN = Offer("eng1_k2=5", 20.0)
GRAPH = "fp32 convolution (2, 3, 6, 6) (4, 3, 3, 3) 1 1 True"
X, W = np.ones((2, 3, 6, 6), np.float32), np.ones((4, 3, 3, 3), np.float32)
RESIDUAL = np.ones((2, 4, 6, 6), np.float32)


class Kernel:
    """A convolution with residual as a kernel that takes some time and whose result may be off."""

    def __init__(self, microseconds=10.0, off=0.0, error=None, writes=True, varies=0.0):
        self.microseconds, self.off, self.error, self.writes = microseconds, off, error, writes
        self.varies = varies
        self.launches, self.clock = 0, None
        self.candidate = Candidate("jo_test", self.launch_for)

    def launch_for(self, precision, operation, *arguments):
        if (precision, operation, arguments[-1]) == ("fp32", "convolution", True):
            return self.launch
        return None

    def launch(self, arrays):
        self.launches += 1
        self.clock(self.microseconds)
        if self.error is not None:
            raise self.error
        if self.writes:
            y = conv(arrays["x"], arrays["W"], [1, 1], [1, 1]) + arrays["residual"]
            arrays["y"][...] = y * (1 + self.off + self.launches * self.varies)


def make(kernel, *offers, folder=None, precision="fp32", own=True):
    library = Library()
    library.offers = offers or (CUDNN,)

    def advance(microseconds):
        library.clock += 1e-6 * microseconds

    kernel.clock = advance
    arrays = HostArrays(lambda: library.clock)
    kernels = SimpleNamespace(occupy=lambda x, passes: None)
    kernels_of_own = (kernel.candidate,) if own else ()
    backend = CuDNN(library, "handle", precision, arrays, kernels, Choices(HERE), kernels_of_own)
    backend.fused = frozenset({"conv2d"})
    if folder is not None:
        backend.keep_choices(folder)
    return backend, library


def convolution(backend):
    return backend.conv2d(X, W, 1, 1, RESIDUAL)


def kept(folder):
    return json.loads((folder / NAME).read_text())[HERE][GRAPH]


def test_a_faster_kernel_runs_from_then_on_and_is_kept_by_name(tmp_path, caplog):
    kernel = Kernel(off=1e-6)  # to be told from cuDNN's
    backend, _ = make(kernel, folder=tmp_path)
    plain = convolution(make(Kernel(), own=False)[0])
    for _ in range(2):
        assert np.array_equal(convolution(backend), plain * np.float32(1 + 1e-6))
    assert kept(tmp_path)["plan"] == "jo_test" and not caplog.records

    again, library = make(kernel, folder=tmp_path)
    before = kernel.launches
    convolution(again)
    assert kernel.launches == before + 1 and library.graphs[0].runs == 0, "not timed again"
    cudnns, _ = make(kernel, own=False)
    convolution(cudnns)
    assert again.choices == backend.choices != cudnns.choices


@pytest.mark.parametrize("microseconds", [30.0, 19.9])
def test_a_kernel_that_is_not_faster_changes_nothing(tmp_path, caplog, microseconds):
    backend, _ = make(Kernel(microseconds), folder=tmp_path)
    without, _ = make(Kernel(), own=False)
    assert np.array_equal(convolution(backend), convolution(without))
    assert backend.choices == without.choices and not caplog.records
    assert kept(tmp_path)["plan"] == CUDNN.name


@pytest.mark.parametrize(("kernel", "fault"), [
    (Kernel(off=2 * TOLERANCE["fp32"]), "differs from cuDNN by 0.0002 in relative norm"),
    (Kernel(writes=False), "differs from cuDNN by nan"),
    (Kernel(error=RuntimeError("CUDA_ERROR_INVALID_VALUE\nmore")), "fails: CUDA_ERROR_INVALID_VAL"),
    (Kernel(error=KeyError("gy")), "fails: 'gy'"),
    (Kernel(error=MemoryError()), "fails: MemoryError"),
    (Kernel(varies=1e-6), "has other bits at its second call"),
])  # fmt: skip
def test_a_wrong_kernel_is_rejected_in_one_line(tmp_path, caplog, kernel, fault):
    backend, _ = make(kernel, folder=tmp_path)
    without, _ = make(Kernel(), own=False)
    for _ in range(2):
        assert np.array_equal(convolution(backend), convolution(without))
    (record,) = caplog.records
    line = record.getMessage()
    assert "jo_test" in line and GRAPH in line and fault in line and "\n" not in line
    assert kernel.launches == 1 + bool(kernel.varies) and kept(tmp_path)["plan"] == CUDNN.name
    assert backend.choices == without.choices


def test_a_kernel_needs_a_result_of_cudnns_to_be_compared_with():
    kernel = Kernel()
    backend, _ = make(kernel, Offer("eng9", builds=False))
    with pytest.raises(Exception, match="no engine"):
        convolution(backend)
    assert not kernel.launches


def test_nothing_is_compared_while_a_stream_captures(tmp_path):
    kernel = Kernel()
    backend, _ = make(kernel, folder=tmp_path)
    backend._xp.capturing = True
    convolution(backend)
    assert not kernel.launches and kept(tmp_path)["plan"] == CUDNN.name


def test_a_run_that_was_begun_with_a_kernel_goes_on_without_it_after_one_line(tmp_path, caplog):
    convolution(make(Kernel(), folder=tmp_path)[0])
    backend, _ = make(Kernel(), folder=tmp_path, own=False)
    convolution(backend)
    (record,) = caplog.records
    assert "no plan jo_test any more" in record.getMessage()
    assert kept(tmp_path)["plan"] == CUDNN.name


@pytest.mark.parametrize(("capability", "used"), [("75", False), ("80", True), ("120", True)])
def test_own_kernels_need_a_compute_capability(monkeypatch, capability, used):
    kernel = Kernel()
    backend, library = make(kernel)
    arrays = HostArrays(lambda: library.clock)
    arrays.cuda.Device = lambda: SimpleNamespace(
        compute_capability=capability, synchronize=lambda: None
    )
    monkeypatch.setitem(sys.modules, "cupy", arrays)
    monkeypatch.setattr(cudnn_library, "load", lambda precision: (library, "handle"))
    monkeypatch.setattr(cudnn_library, "machine", lambda library, cupy: f"GPU of {capability}")
    monkeypatch.setattr(candidates, "OWN", (kernel.candidate,))
    loaded = cudnn.load("fp32")
    loaded._kernels, loaded.fused = backend._kernels, backend.fused
    convolution(loaded)
    assert bool(kernel.launches) == used


def test_differences_are_relative_and_never_hide_nan():
    a, zero = np.full(4, 2.0, np.float16), np.zeros(4, np.float16)
    assert difference([a, a], [a, a * 2]) == 0.5
    assert difference([zero], [zero]) == 0 and difference([a], [zero]) == np.inf
    assert np.isnan(difference([a, a * np.nan], [a, a]))
    assert np.isnan(difference([a * np.nan, a], [a, a]))


X32, W32 = (128, 32, 32, 32), (32, 32, 3, 3)


@pytest.mark.parametrize(("name", "offered", "not_offered"), [
    ("jo_batch_norm", [
        ("mixed", "batch_norm", (128, 32, 32, 32), True),
        ("fp32", "batch_norm_grad", (128, 4, 7, 5), True),
    ], [
        ("mixed", "batch_norm", (128, 32, 32, 32), False),
        ("mixed", "batch_norm", (128, 4, 32, 32), True),
        ("fp32", "batch_norm_grad", (128, 12, 32, 32), True),
        ("mixed", "convolution", X32, W32, 1, 1, False),
        ("mixed", "convolution_scale_relu", X32, W32, 1, 1),
    ]),
    ("jo_conv32", [
        ("mixed", "convolution", X32, W32, 1, 1, True),
        ("mixed", "convolution_grad_input", X32, W32, 1, 1, False),
        ("mixed", "convolution_grad_weight", (1, 32, 32, 32), W32, 1, 1),
    ], [
        ("tf32", "convolution", X32, W32, 1, 1, True),
        ("mixed", "convolution", (128, 64, 16, 16), (64, 64, 3, 3), 1, 1, True),
        ("mixed", "convolution", (128, 32, 16, 16), W32, 1, 1, True),
        ("mixed", "convolution", X32, W32, 2, 1, True),
        ("mixed", "convolution_grad_weight", X32, W32, 1, 0),
        ("mixed", "convolution_grad_weight", X32, (32, 32, 1, 1), 1, 1),
        ("mixed", "batch_norm", X32, True),
        ("mixed", "convolution_scale_relu", X32, W32, 1, 1),
    ]),
])  # fmt: skip
def test_own_kernels_are_offered_for_what_they_can_compute(name, offered, not_offered):
    (launch_for,) = (own.launch_for for own in OWN if own.name == name)
    assert all(launch_for(*words) for words in offered)
    assert not any(launch_for(*words) for words in not_offered)
