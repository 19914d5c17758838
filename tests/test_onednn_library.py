"""Finding oneDNN, doing without it, and the instructions that it may use."""

import ctypes
import functools
import sys
from importlib import metadata

import pytest
from engines import backend, library
from processes import environment, run

from chainer_jo.engine import backend as backends
from chainer_jo.engine.backend import _load, _notice_once, choose_backend
from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.interface import Unavailable
from chainer_jo.errors import UserError


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

    def cannot(path):
        """As in python:3.13-slim and the like, where the package's oneDNN cannot be loaded."""
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
    (["3.11.dylib", "3.dylib"], [], [], True, "environment/lib/libdnnl.3.11.dylib"),
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
            name = "libdnnl." if version.endswith("dylib") else "libdnnl.so."
            path = tmp_path / folder / "lib" / f"{name}{version}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if version == "3.dylib":  # conda-forge's, named as programs are linked
                path.symlink_to(f"{name}{versions[0]}")
            else:
                path.touch()
    monkeypatch.setattr("site.ENABLE_USER_SITE", access)
    monkeypatch.setattr(dnnl, "Library", lambda path: path)
    assert dnnl.find().removeprefix(f"{tmp_path}/") == chosen


@pytest.mark.parametrize("name, value, words", [
    ("OLDEST", (99, 0), "older than 99.0"), ("_OPENMP", -1, "does not use OpenMP threads"),
])  # fmt: skip
def test_a_library_that_does_not_fit_is_unavailable(name, value, words, monkeypatch):
    path = library().path
    monkeypatch.setattr(dnnl, name, value)
    with pytest.raises(Unavailable, match=words):
        dnnl.Library(path)


@pytest.mark.parametrize("options", [("half",), ("fp32", "mkldnn"), ("fp32", "cudnn"), ("tf32",)])
def test_wrong_choices_are_the_users_to_mend(options):
    with pytest.raises(UserError, match="expected"):
        choose_backend("cpu", *options)


@pytest.mark.parametrize(("instructions", "amx"), [
    (0x7, None), (0x27, None), (0x67, None),  # AVX2, AVX-512, AVX-512 with VNNI
    (0xE7, False), (0x1EF, False), (0xFEF, True),  # bfloat16, float16, AMX
])  # fmt: skip
def test_mixed_needs_bfloat16_instructions(instructions, amx, monkeypatch, fresh_process):
    library() if amx is None else backend("mixed")
    backends._load.cache_clear()
    monkeypatch.setattr(dnnl.Library, "instructions", lambda library: instructions)
    if amx is None:
        with pytest.raises(UserError, match="'mixed' needs a CPU with bfloat16 instructions"):
            choose_backend("cpu", "mixed")
        assert choose_backend("cpu", "fp32", "onednn").precision == "fp32"
    else:
        assert choose_backend("cpu", "mixed")._planner.amx == amx


def test_onednn_says_what_it_is_kept_from_and_threads_do_not_spin_while_they_wait():
    """GNU's OpenMP says what it goes by as it is loaded."""
    backend("mixed")
    command = "from chainer_jo.engine.cpu import dnnl; print(dnnl.find().instructions())"
    for limit, instructions in (("AVX2", 0x7), ("SSE41", 0x1)):
        env = environment(ONEDNN_MAX_CPU_ISA=limit, OMP_DISPLAY_ENV="verbose")
        env.pop("OMP_WAIT_POLICY", None)
        said = run([sys.executable, "-c", command], env=env)
        assert int(said.stdout) == instructions
        assert "GOMP_SPINCOUNT = '0'" in said.stderr or "GOMP_SPINCOUNT" not in said.stderr
