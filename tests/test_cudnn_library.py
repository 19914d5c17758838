"""What is said when cuDNN, or something that it needs, is missing."""

import logging
import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_cudnn import Library

from chainer_jo.engine.backend import _notice_once, choose_backend
from chainer_jo.engine.cuda import cudnn_library
from chainer_jo.engine.interface import Unavailable
from chainer_jo.errors import UserError


def fails(error):
    def call():
        raise error

    return call


class FakeCuPy(ModuleType):
    def __init__(self, capability="90", runtime=12090, version="14.2.0", error=None):
        super().__init__("cupy")
        self.__version__ = version
        device = SimpleNamespace(compute_capability=capability)
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(runtimeGetVersion=lambda: runtime),
            Device=fails(error) if error else lambda: device,
        )


def install(monkeypatch, cupy, cudnn):
    for name, module in (("cupy", cupy), ("cudnn", cudnn), ("cuda", None)):
        monkeypatch.setitem(sys.modules, name, module)


def without(**changes):
    library = Library()
    for name, value in changes.items():
        setattr(library, name, value)
    return library


@pytest.mark.parametrize(("cupy", "cudnn", "precision", "message"), [
    (None, None, "fp32", "CuPy cannot be imported .*cupy-cuda12x.*cupy-cuda13x"),
    (FakeCuPy(version="13.6.0"), None, "fp32", "CuPy 13.6.0 is too old, expected 14"),
    (FakeCuPy(error=RuntimeError("none\nat line 3")), None, "fp32", r"no CUDA GPU \(none\)"),
    (FakeCuPy(), None, "fp32", "pip install nvidia-cudnn-frontend"),
    (FakeCuPy(), ModuleType("cudnn"), "fp32", "NVIDIA's .*pip install nvidia-cudnn-frontend"),
    (FakeCuPy(), without(backend_version=fails(RuntimeError("no symbol"))), "fp32",
     "cuDNN 9 is not found .*pip install nvidia-cudnn-cu12$"),
    (FakeCuPy(runtime=13020), without(backend_version=lambda: 90500), "fp32",
     "cuDNN 9.5.0 is too old, expected 9.10.0 .*nvidia-cudnn-cu13$"),
    (FakeCuPy(), without(create_handle=fails(RuntimeError("driver"))), "fp32",
     "cuDNN 9.20.0 does not work with this GPU and its CUDA 12 driver .*nvidia-cudnn-cu12$"),
    (FakeCuPy("75"), Library(), "tf32", "compute capability 7.5, tf32 needs 8.0"),
    (FakeCuPy("61"), Library(), "mixed", "compute capability 6.1, mixed needs 7.0"),
])  # fmt: skip
def test_what_is_missing_is_named(monkeypatch, cupy, cudnn, precision, message):
    install(monkeypatch, cupy, cudnn)
    with pytest.raises(Unavailable, match=message) as caught:
        cudnn_library.load(precision)
    assert "\n" not in str(caught.value)


def test_everything_in_place(monkeypatch):
    library = Library()
    install(monkeypatch, FakeCuPy("90"), library)
    assert cudnn_library.load("mixed") == (library, "handle")
    assert cudnn_library.load("fp32") == (library, "handle")


@pytest.mark.parametrize("error", [RuntimeError("Failed to dlopen"), OSError("dlinfo"), KeyError()])
def test_a_library_that_cannot_be_loaded_beforehand_may_still_be_found(monkeypatch, error):
    library, asked = Library(), []
    install(monkeypatch, FakeCuPy(), library)
    finder = SimpleNamespace(
        load_nvidia_dynamic_lib=lambda name: asked.append(name) or fails(error)()
    )
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(pathfinder=finder))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", finder)
    assert cudnn_library.load("mixed") == (library, "handle")
    assert asked == ["cudart", "nvrtc", "cublasLt", "cudnn"]


def test_without_cudnn_stock_chainer_computes_after_one_notice(monkeypatch, caplog):
    install(monkeypatch, FakeCuPy(), None)
    _notice_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert choose_backend("cuda") is None
        assert choose_backend("cuda") is None
    assert [r.message.count("pip install nvidia-cudnn-frontend") for r in caplog.records] == [1]
    with pytest.raises(
        UserError, match="'mixed' needs the cudnn engine, and .*nvidia-cudnn-frontend"
    ):
        choose_backend("cuda", "mixed")
    with pytest.raises(UserError, match="'cudnn' is not available: .*nvidia-cudnn-frontend"):
        choose_backend("cuda", engine="cudnn")
