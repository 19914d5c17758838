"""Memory of the CPU engine: flat over calls and backends, given back, kept from the system."""

import gc
import mmap
import platform
import sys

import chainer
import numpy as np
import pytest
from engines import backend, library
from processes import run

from chainer_jo.engine.cpu import onednn
from chainer_jo.engine.cpu.buffers import ALIGNMENT, Buffers
from chainer_jo.engine.functions import batch_norm_relu, conv2d, spatial_mean
from chainer_jo.method.preact_resnet import PreActResNet


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_what_a_backend_has_made_ends_with_it(name):
    """Memory is flat over 15 backends that each train a network for a step."""
    backend(name)
    net = PreActResNet(1, 10, (1, 1), (16, 32), np.random.RandomState(0))

    def train(times):
        for _ in range(times):
            with chainer.using_config("jo_backend", onednn.load(name)):
                net.cleargrads()
                logits = net(np.ones((4, 1, 8, 8), np.float32))
                chainer.functions.softmax_cross_entropy(logits, np.zeros(4, "i")).backward()
        gc.collect()
        return _resident()

    resident = train(5)
    assert train(10) - resident < 4 << 20  # 1.2 MB of each used to stay, 12 MB in all


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_memory_is_flat_over_a_thousand_calls(name):
    chosen = backend(name)
    rng = np.random.RandomState(0)
    x = chosen.as_activation(rng.randn(8, 16, 8, 8).astype(np.float32))
    W = chainer.Parameter(rng.randn(16, 16, 3, 3).astype(np.float32))
    gamma, beta = chainer.Parameter(np.ones(16, "f")), chainer.Parameter(np.zeros(16, "f"))
    mean, var = np.zeros(16, np.float32), np.ones(16, np.float32)

    def iterate(times):
        with chainer.using_config("jo_backend", chosen):
            for _ in range(times):
                h = conv2d(x, W, 1, 1, residual=x)
                h = batch_norm_relu(h, gamma, beta, mean, var)
                W.cleargrad()
                chainer.functions.sum(spatial_mean(h)).backward()

    iterate(100)
    gc.collect()
    pool, resident = chosen.buffers.allocated, _resident()
    iterate(1000)
    assert chosen.buffers.allocated == pool
    assert _resident() - resident < 4 << 20  # one result of each call kept would be tens of MB


def test_buffers_come_back_when_their_last_view_is_gone():
    buffers, float32 = Buffers(), np.dtype(np.float32)
    for shape in ((3, 5), (1 << 19,)):
        first = buffers.empty(shape, float32)
        address, view = first.ctypes.data, first[1:].T
        assert address % ALIGNMENT == 0
        first[...] = 7
        del first
        second = buffers.empty(shape, float32)
        assert second.ctypes.data != address
        assert (view == 7).all()
        del view
        assert buffers.empty(shape, float32).ctypes.data == address


def test_a_kernel_without_huge_pages_gives_memory_too(monkeypatch):
    class Small(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Small)
    assert Buffers().empty((1 << 20,), np.dtype(np.float32)).sum() == 0


FAULTS = """
import resource, sys
import numpy as np
from chainer_jo.engine.backend import choose_backend

choose_backend("cpu", engine=sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(150):
    np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_stock_chainers_memory_is_kept_as_well():
    library()
    faults = {
        engine: int(run([sys.executable, "-c", FAULTS, engine]).stdout)
        for engine in ("onednn", "stock")
    }
    if not faults["onednn"]:
        pytest.skip("this system counts no page faults")
    # Those of one array, not of 150; the first may lie badly for huge pages.
    assert faults["stock"] < faults["onednn"] / 2


def _resident():
    """Bytes of this process in memory; the test is skipped where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        pytest.skip("no /proc/self/statm")
