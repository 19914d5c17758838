"""What is oneDNN's own: finding it, doing without it, the whole network, threads, memory."""

import copy
import ctypes
import functools
import gc
import mmap
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import chainer
import numpy as np
import pytest
from engines import backend
from float64_backend import Float64
from float64_functions import conv2d as conv2d64
from float64_functions import conv2d_gradients, relative_error
from processes import environment, run

from chainer_jo.engine import backend as backends
from chainer_jo.engine.backend import Unavailable, _load, _notice_once, choose_backend
from chainer_jo.engine.cpu import dnnl, onednn, onednn_plans
from chainer_jo.engine.cpu.buffers import ALIGNMENT, Buffers
from chainer_jo.engine.functions import batch_norm_relu, conv2d, spatial_mean
from chainer_jo.errors import UserError
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.runs.provenance import computing


@pytest.fixture
def fresh_process(monkeypatch):
    """No backend has been loaded so far, and none of the test's own stays."""
    monkeypatch.setattr(backends, "_load", functools.cache(_load.__wrapped__))


@pytest.fixture
def missing(monkeypatch, fresh_process):
    def find():
        raise Unavailable("no usable oneDNN (package onednn-cpu-gomp)")

    monkeypatch.setattr(dnnl, "find", find)
    _notice_once.cache_clear()


def test_without_the_library_stock_chainer_computes_and_says_so_once(missing, caplog):
    assert choose_backend("cpu") is None
    assert choose_backend("cpu") is None
    (record,) = caplog.records
    assert "onednn-cpu-gomp" in record.message and "stock Chainer" in record.message
    with pytest.raises(UserError, match="engine: 'onednn' is not available: .*onednn-cpu-gomp"):
        choose_backend("cpu", engine="onednn")
    with pytest.raises(UserError, match="precision: 'mixed' needs the onednn engine"):
        choose_backend("cpu", "mixed")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Python's environment is a folder of the test's, and no library is anywhere else."""
    monkeypatch.setattr("sysconfig.get_path", {"data": str(tmp_path / "environment")}.get)
    monkeypatch.setattr("site.PREFIXES", [str(tmp_path / "below")])
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path / "user"))
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)


def test_a_broken_library_is_unavailable(tmp_path, monkeypatch, packages):
    broken = tmp_path / "environment" / "lib" / "libdnnl.so.3.99"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"not a library")
    with pytest.raises(Unavailable, match="cannot be loaded as oneDNN"):
        dnnl.Library(str(broken))
    with pytest.raises(Unavailable, match="cannot be loaded as oneDNN"):
        dnnl.Library("libm.so.6")
    monkeypatch.setattr(dnnl, "SYSTEM", "libdnnl-that-nobody-has.so.3")
    with pytest.raises(Unavailable, match=r"onednn-cpu-gomp.*libdnnl\.so\.3\.99.*nobody-has"):
        dnnl.find()


def test_a_system_without_openmp_is_told_what_it_lacks(monkeypatch):
    """As python:3.13-slim and the like, where the package's oneDNN cannot be loaded."""

    def cannot(path):
        raise Unavailable(f"{path} ({dnnl.OPENMP}: cannot open shared object file: No such file)")

    monkeypatch.setattr(dnnl, "Library", cannot)
    with pytest.raises(Unavailable, match="lacks GNU's OpenMP, Debian's and Ubuntu's libgomp1"):
        dnnl.find()


def test_a_package_that_is_installed_is_found():
    """Where it is not, other tests skip."""
    try:
        metadata.version("onednn-cpu-gomp")
    except metadata.PackageNotFoundError:
        pytest.skip("onednn-cpu-gomp is not installed")
    try:
        ctypes.CDLL(dnnl.OPENMP)
    except OSError:
        pytest.skip("the system has no GNU OpenMP")
    assert dnnl.find().path


@pytest.mark.parametrize(("environment", "below", "of_user", "access", "chosen"), [
    (["3.2", "3.10"], [], ["3.9"], True, "environment/lib/libdnnl.so.3.10"),
    (["3.2"], [], ["3.10"], True, "user/lib/libdnnl.so.3.10"),
    (["3.2"], [], ["3.10"], False, "environment/lib/libdnnl.so.3.2"),
    (["3.2"], ["3.2"], ["3.2"], True, "environment/lib/libdnnl.so.3.2"),
    (["3.2"], ["3.10"], ["3.9"], True, "below/lib/libdnnl.so.3.10"),
    ([], [], ["3.10"], False, dnnl.SYSTEM),
])  # fmt: skip
def test_the_newest_package_is_taken(
    tmp_path, monkeypatch, packages, environment, below, of_user, access, chosen
):
    """Where packages put their libraries is not below sys.prefix on every system."""
    folders = {"environment": environment, "below": below, "user": of_user}
    for folder, versions in folders.items():
        for version in versions:
            path = tmp_path / folder / "lib" / f"libdnnl.so.{version}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    monkeypatch.setattr("site.ENABLE_USER_SITE", access)
    monkeypatch.setattr(dnnl, "Library", lambda path: path)
    assert dnnl.find().removeprefix(f"{tmp_path}/") == chosen


def test_the_library_of_macos_is_found(tmp_path, monkeypatch, packages):
    """conda-forge's: a link, named after the version that programs are linked against."""
    lib = tmp_path / "environment" / "lib"
    lib.mkdir(parents=True)
    (lib / "libdnnl.3.11.dylib").touch()
    (lib / "libdnnl.3.dylib").symlink_to("libdnnl.3.11.dylib")
    monkeypatch.setattr(dnnl, "Library", lambda path: path)
    assert dnnl.find() == str(lib / "libdnnl.3.11.dylib")


@pytest.mark.parametrize(
    "name, value, words",
    [("OLDEST", (99, 0), "older than 99.0"), ("_OPENMP", -1, "does not use OpenMP threads")],
)
def test_a_library_that_does_not_fit_is_unavailable(name, value, words, monkeypatch):
    path = _library().path
    monkeypatch.setattr(dnnl, name, value)
    with pytest.raises(Unavailable, match=words):
        dnnl.Library(path)


@pytest.mark.parametrize("options", [("half",), ("fp32", "mkldnn"), ("fp32", "cudnn"), ("tf32",)])
def test_wrong_choices_are_the_users_to_mend(options):
    with pytest.raises(UserError, match="expected"):
        choose_backend("cpu", *options)


@pytest.mark.parametrize("instructions", [0x7, 0x27, 0x67])  # AVX2, AVX-512, AVX-512 with VNNI
def test_mixed_is_refused_without_bfloat16_instructions(instructions, monkeypatch, fresh_process):
    _library()
    monkeypatch.setattr(dnnl.Library, "instructions", lambda library: instructions)
    with pytest.raises(UserError, match="'mixed' needs a CPU with bfloat16 instructions"):
        choose_backend("cpu", "mixed")
    assert choose_backend("cpu", "fp32", "onednn").precision == "fp32"


@pytest.mark.parametrize(
    ("instructions", "amx"),
    [(0xE7, False), (0x1EF, False), (0xFEF, True)],  # bfloat16, float16, AMX
)
def test_amx_is_told_from_bfloat16_instructions(instructions, amx, monkeypatch, fresh_process):
    backend("mixed")
    _load.cache_clear()
    monkeypatch.setattr(dnnl.Library, "instructions", lambda library: instructions)
    assert choose_backend("cpu", "mixed")._planner.amx == amx


def test_onednn_says_what_it_is_kept_from():
    backend("mixed")
    command = "from chainer_jo.engine.cpu import dnnl; print(dnnl.find().instructions())"
    for limit, instructions in (("AVX2", 0x7), ("SSE41", 0x1)):
        env = environment(ONEDNN_MAX_CPU_ISA=limit)
        assert int(run([sys.executable, "-c", command], env=env).stdout) == instructions


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_what_a_backend_has_made_ends_with_it(name):
    """Memory is flat over 60 backends that each train a network for a step."""
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

    resident = train(20)
    assert train(40) - resident < 16 << 20  # 1.2 MB of each used to stay, 48 MB in all


def losses_and_gradients(net, chosen):
    """Logits in training and (but for Float64) in test mode, and every parameter's gradient."""
    rng = np.random.RandomState(2)
    x, labels = rng.randn(8, 3, 32, 32).astype(np.float32), np.arange(8, dtype=np.int32)
    for link in net.links():
        if hasattr(link, "avg_mean"):
            link.avg_mean[:], link.avg_var[:] = 0, 1
    with chainer.using_config("jo_backend", chosen):
        net.cleargrads()
        logits = net(x)
        chainer.functions.softmax_cross_entropy(logits, labels).backward()
        gradients = {name: p.grad for name, p in net.namedparams()}
        if isinstance(chosen, Float64):
            return logits.array, None, gradients
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return logits.array, net(x).array, gradients


def in_float64(net):
    """A copy of a network with float64 parameters and statistics."""
    net = copy.deepcopy(net)
    for parameter in net.params():
        parameter.array = parameter.array.astype(np.float64)
    for link in net.links():
        if hasattr(link, "avg_mean"):
            link.avg_mean = link.avg_mean.astype(np.float64)
            link.avg_var = link.avg_var.astype(np.float64)
    return net


def active_units(chosen, monkeypatch):
    """The list that `chosen` will have filled in with where its ReLUs were active."""
    kind, active = type(chosen), []
    original = kind.batch_norm_relu_train

    def noting(*arguments):
        results = original(*arguments)
        active.append(np.float32(results[0]) > 0)
        return results

    monkeypatch.setattr(kind, "batch_norm_relu_train", noting)
    return active


def errors(found, expected):
    return [relative_error(found[name], expected[name]) for name in expected]


@pytest.mark.parametrize(
    ("name", "of_outputs", "of_gradients"), [("fp32", 1e-5, 3e-5), ("mixed", 2e-2, 0.15)]
)
def test_the_papers_network(name, of_outputs, of_gradients, monkeypatch):
    """Outputs as stock Chainer's in both modes; all gradients as in float64 with the same units
    active (see `float64_backend`)."""
    net, chosen = PreActResNet(rng=np.random.RandomState(0)), backend(name)
    stock = losses_and_gradients(net, None)
    active = active_units(chosen, monkeypatch)
    ours = losses_and_gradients(net, chosen)
    truth = losses_and_gradients(in_float64(net), Float64(active))
    assert relative_error(ours[0], stock[0]) < of_outputs
    assert relative_error(ours[1], stock[1]) < of_outputs
    found = errors(ours[2], truth[2])
    assert max(found) < of_gradients
    assert np.median(found) < of_gradients / 3


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_the_same_run_twice_is_bit_identical(name):
    net, chosen = PreActResNet(rng=np.random.RandomState(0)), backend(name)
    first, again = (losses_and_gradients(net, chosen) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])
    for parameter in first[2]:
        np.testing.assert_array_equal(first[2][parameter], again[2][parameter])


class Choices:
    """A library whose convolutions have these implementations, the first choice first."""

    def __init__(self, *names):
        self.names = names

    def describe(self, kind):
        return [0]

    def implementation(self, desc):
        return self.names[desc[0]]

    def move_on(self, desc):
        desc[0] += 1
        return desc[0] < len(self.names)


@pytest.mark.parametrize("names, chosen", [
    (("brgconv_strided:avx512_core", "jit:avx512_core"), "jit:avx512_core"),
    (("brg_fwd:avx2+brgconv:avx2", "jit_1x1:avx2"), "jit_1x1:avx2"),
    (("brgconv:avx512_core", "brgconv:avx2", "jit:avx2"), "brgconv:avx512_core"),
    (("brgconv:avx512_core", "jit:avx2"), "brgconv:avx512_core"),
    (("brgconv:avx512_core",) * 2 + ("jit:avx512_core",), "jit:avx512_core"),
    (("brgconv:avx512_core_amx", "jit:avx512_core_amx"), "jit:avx512_core_amx"),
    (("brgconv:avx512_core_amx", "jit:avx512_core"), "brgconv:avx512_core_amx"),
    (("jit:avx512_core", "x64:gemm:jit"), "jit:avx512_core"),
    (("ref:any",), "ref:any"),
])  # fmt: skip
def test_the_direct_kernel_is_taken_where_it_is_as_good_as_the_first(names, chosen):
    library = Choices(*names)
    assert library.implementation(onednn_plans._describe(library, True, "kind")) == chosen
    assert library.implementation(onednn_plans._describe(library, False, "kind")) == names[0]


@pytest.mark.parametrize("name", ["fp32", "mixed"])
@pytest.mark.parametrize("channels", [1, 4, 8, 15])
def test_no_kernel_of_one_pixel_for_a_part_of_a_block_with_a_stride(name, channels):
    """For the gradient of weights it writes beyond its memory, which ends in an abort somewhere
    else (with AVX2 alone at the latest)."""
    planner, W_shape = backend(name)._planner, (8, channels, 1, 1)
    plan = onednn_plans.Conv2DGradWeight(planner, (3, channels, 16, 16), W_shape, 2, 0)
    assert "1x1" not in plan._convolve.implementation


class Machine:
    def __init__(self, amx, data_type=dnnl.F32, avx512=True):
        self.amx, self.data_type, self.avx512 = amx, data_type, avx512


@pytest.mark.parametrize(("machine", "gradient", "width", "W_shape", "stride", "direct"), [
    (Machine(False), True, 16, (64, 32, 3, 3), 2, True),
    (Machine(False), False, 8, (64, 64, 3, 3), 1, True),
    (Machine(False), False, 16, (64, 32, 3, 3), 2, False),
    (Machine(True), False, 8, (64, 64, 3, 3), 1, False),
    (Machine(True), False, 16, (32, 32, 3, 3), 1, False),
    (Machine(True), False, 8, (16, 16, 3, 3), 1, True),
    (Machine(True), False, 4, (48, 48, 3, 3), 1, False),
    (Machine(True), True, 4, (48, 48, 3, 3), 1, True),
    (Machine(True), False, 8, (16, 16, 1, 1), 1, False),
    (Machine(True), True, 16, (32, 32, 3, 3), 1, False),
    (Machine(True), True, 4, (128, 64, 3, 3), 2, False),
    (Machine(True), True, 8, (64, 32, 3, 3), 2, True),
    (Machine(True, dnnl.BF16), True, 8, (16, 16, 3, 3), 1, False),
    (Machine(True, dnnl.BF16), True, 4, (128, 64, 1, 1), 2, True),
    (Machine(True, dnnl.BF16), True, 16, (64, 32, 1, 1), 2, True),
    (Machine(True, dnnl.BF16), False, 8, (64, 32, 1, 1), 2, False),
    (Machine(True, dnnl.BF16), False, 8, (64, 32, 3, 3), 2, True),
    (Machine(True, dnnl.BF16), False, 4, (128, 64, 3, 3), 2, False),
    (Machine(True, dnnl.BF16), True, 32, (32, 32, 3, 3), 1, True),
    (Machine(False, avx512=False), False, 4, (48, 48, 3, 3), 1, False),
    (Machine(False, avx512=False), True, 8, (64, 64, 3, 3), 1, False),
    (Machine(False, avx512=False), True, 16, (64, 32, 3, 3), 2, False),
    (Machine(False, avx512=False), True, 4, (48, 16, 3, 3), 2, True),
    (Machine(False, avx512=False), False, 8, (16, 16, 3, 3), 1, False),
    (Machine(False, avx512=False), True, 16, (32, 32, 1, 1), 1, True),
    (Machine(False, avx512=False), False, 4, (48, 16, 1, 1), 2, True),
])  # fmt: skip
def test_which_kernel_by_shape_and_instructions(machine, gradient, width, W_shape, stride, direct):
    y_shape = (128, W_shape[0], width, width)
    assert onednn_plans.direct_is_faster(machine, gradient, y_shape, W_shape, stride) == direct


@pytest.mark.parametrize(("x_shape", "o", "k", "stride", "pad"), [
    ((6, 2, 4, 4), 3, 3, 1, 1),
    ((6, 2, 8, 8), 3, 3, 2, 1),
    ((6, 2, 7, 7), 3, 3, 2, 1),
    ((6, 2, 5, 6), 3, 5, 1, 2),
    ((6, 2, 6, 6), 3, 2, 2, 0),
])  # fmt: skip
def test_joined_images_have_the_same_gradient_of_weights(x_shape, o, k, stride, pad):
    """What lies between them is 0 in x and in gy, and wide enough."""
    n, c, h, w = x_shape
    W_shape = (o, c, k, k)
    y_shape = conv2d64(np.zeros(x_shape), np.zeros(W_shape), stride, pad).shape
    rng = np.random.default_rng(0)
    x, gy = rng.standard_normal(x_shape), rng.standard_normal(y_shape)
    _, expected = conv2d_gradients(x, np.zeros(W_shape), gy, stride, pad)
    rows = onednn_plans.side_by_side(x_shape, y_shape, W_shape, stride, pad)
    joined = [joined_in(row, images) for row, images in zip(rows, (x, gy), strict=True)]
    assert all(len(images) < n for images in joined)
    _, found = conv2d_gradients(joined[0], np.zeros(W_shape), joined[1], stride, pad)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def joined_in(shape, images):
    n, _, _, w = images.shape
    groups = shape[0]
    joined = np.zeros((*shape[:3], n // groups, shape[3] // (n // groups)))
    joined[..., :w] = images.reshape(groups, -1, *images.shape[1:]).transpose(0, 2, 3, 1, 4)
    return joined.reshape(shape)


def test_what_is_not_joined():
    """Rows that are long, kernels of one pixel, and what does not fit without padding."""
    assert onednn_plans.side_by_side((8, 2, 6, 6), (8, 3, 4, 4), (3, 2, 3, 3), 1, 0) is None
    assert onednn_plans.side_by_side((8, 2, 16, 16), (8, 3, 16, 16), (3, 2, 3, 3), 1, 1) is None
    assert onednn_plans.side_by_side((8, 2, 8, 8), (8, 3, 8, 8), (3, 2, 1, 1), 1, 0) is None


def test_number_of_threads():
    chosen = backend("fp32")
    before = chosen.threads
    x = np.random.RandomState(0).randn(4, 16, 8, 8).astype(np.float32)
    W = np.random.RandomState(1).randn(16, 16, 3, 3).astype(np.float32)
    try:
        results = {}
        for count in (1, 2, 3):
            chosen.set_threads(count)
            assert computing(chainer.get_device("@numpy"), chosen)["threads"] == count
            results[count] = chosen.conv2d(x, W, 1, 1, None)
    finally:
        chosen.set_threads(before)
    for result in results.values():
        assert relative_error(result, results[1]) < 1e-6


def test_threads_do_not_spin_while_they_wait():
    """GNU's OpenMP says what it goes by as it is loaded."""
    _library()
    program = "from chainer_jo.engine.cpu import dnnl; dnnl.find()"
    fresh = environment(OMP_DISPLAY_ENV="verbose")
    fresh.pop("OMP_WAIT_POLICY", None)
    said = run([sys.executable, "-c", program], env=fresh).stderr
    if "GOMP_SPINCOUNT" not in said:
        pytest.skip("oneDNN's OpenMP here is not GNU's")
    assert "GOMP_SPINCOUNT = '0'" in said


def test_calls_from_many_threads():
    """Different inputs of one shape share a primitive: none may see another's arrays."""
    chosen = backend("fp32")
    rng = np.random.RandomState(0)
    inputs = [rng.randn(2, 16, 8, 8).astype(np.float32) for _ in range(8)]
    W = rng.randn(16, 16, 3, 3).astype(np.float32)
    expected = [chosen.conv2d(x, W, 1, 1, x) for x in inputs]

    def is_right(x, y):
        return all(np.array_equal(chosen.conv2d(x, W, 1, 1, x), y) for _ in range(50))

    with ThreadPoolExecutor(len(inputs)) as pool:
        assert all(pool.map(is_right, inputs, expected))


def test_a_thread_runs_what_another_has_made():
    """Gradients of such weights take kernels that need memory besides; with AVX2 it was the
    thread's that had made them, and another one crashed."""
    chosen = backend("fp32")
    rng = np.random.RandomState(0)
    x, gy = rng.randn(64, 1, 2, 2).astype(np.float32), rng.randn(64, 8, 2, 2).astype(np.float32)
    call = chosen.conv2d_grad_weight, x, gy, (8, 1, 3, 3), 1, 1
    expected = chosen.conv2d_grad_weight(*call[1:])
    with ThreadPoolExecutor(1) as pool:
        np.testing.assert_array_equal(pool.submit(*call).result(), expected)


@pytest.mark.parametrize("name", ["fp32", "mixed"])
def test_weights_that_meet_padding_alone_have_no_gradient(name):
    """With a stride, of images one pixel wide: the outer columns of the kernels."""
    chosen = backend(name)
    rng = np.random.RandomState(0)
    x, gy = rng.randn(8, 32, 1, 1).astype(np.float32), rng.randn(8, 32, 1, 1).astype(np.float32)
    x, gy = map(chosen.as_activation, (x, gy))
    for _ in range(3):
        gW = np.array(chosen.conv2d_grad_weight(x, gy, (32, 32, 3, 3), 2, 1))
        centre = gW[:, :, 1, 1].copy()
        gW[:, :, 1, 1] = 0
        assert not gW.any() and np.isfinite(centre).all() and centre.any()


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
    _library()
    faults = {
        engine: int(run([sys.executable, "-c", FAULTS, engine]).stdout)
        for engine in ("onednn", "stock")
    }
    if not faults["onednn"]:
        pytest.skip("this system counts no page faults")
    # Those of one array, not of 150; the first may lie badly for huge pages.
    assert faults["stock"] < faults["onednn"] / 2


def _library():
    try:
        return dnnl.find()
    except Unavailable as error:
        pytest.skip(str(error))


def _resident():
    """Bytes of this process in memory; the test is skipped where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        pytest.skip("no /proc/self/statm")
