"""Chainer on today's NumPy, Python, setuptools and CuPy (chainer_jo._compat)."""

import os
import sys
import textwrap

import chainer
import chainer.functions as F
import numpy as np
import processes
import pytest

HIDE = """
    import sys

    class Hidden:
        def find_spec(self, name, path=None, target=None):
            if name in HIDDEN:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    HIDDEN = {"numpy.distutils", "pkg_resources"}
    sys.meta_path.insert(0, Hidden())
"""

NO_DRIVER = """
    import ctypes

    def no_library(name, *arguments, **keywords):
        raise OSError(name)

    ctypes.CDLL = no_library
"""

TRAIN = """
    import chainer_jo
    import chainer, chainer.functions as F, chainer.links as L, numpy as np
    from chainer.training import StandardUpdater, Trainer, extensions

    model = L.Classifier(L.Linear(4, 3, initialW=0))
    optimizer = chainer.optimizers.MomentumSGD(0.1).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    x = np.sin(np.arange(80, dtype="f")).reshape(20, 4)
    data = chainer.datasets.TupleDataset(x, np.arange(20, dtype="i") % 3)
    iterator = chainer.iterators.SerialIterator(data, 5, shuffle=False)
    trainer = Trainer(StandardUpdater(iterator, optimizer), (2, "epoch"), sys.argv[1])
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.snapshot(), trigger=(1, "epoch"))
    trainer.run()
    log = trainer.get_extension("LogReport").log
    assert log[1]["main/loss"] < log[0]["main/loss"], log

    from chainer import gradient_check
    gradient_check.check_backward(F.tanh, np.ones(3), np.ones(3), dtype="d", atol=1e-6)
    for name in HIDDEN - {"pkg_resources"}:
        assert name not in sys.modules, name
    print("trained")
"""


def run(*scripts: str, argument: str, path: str = "") -> str:
    code = "".join(map(textwrap.dedent, scripts))
    command = [sys.executable, "-W", "error::UserWarning", "-c", code, argument]
    env = {**os.environ, "PYTHONPATH": path}
    return processes.run(command, cwd=processes.ROOT, env=env).stdout


def test_trains_without_numpy_distutils_and_pkg_resources(tmp_path):
    assert "trained" in run(HIDE, TRAIN, argument=str(tmp_path))


def test_cupy_without_a_driver_is_no_gpu(tmp_path):
    """CuPy 14 imports on a machine without a GPU; Chainer must still take it for a CPU."""
    (tmp_path / "cupy.py").write_text("__version__ = '14.2.0'\n")
    script = """
        import chainer_jo, chainer, sys
        cuda = chainer.backends.cuda
        assert not cuda.available and not cuda.cudnn_enabled
        try:
            chainer.get_device("@cupy:0")
        except RuntimeError as error:
            print(error)
        import cupy
        assert cupy.__version__ == "14.2.0"
    """
    printed = run(NO_DRIVER, script, argument="", path=str(tmp_path))
    assert "there is no NVIDIA driver on this machine" in printed


DRIVER = """
    import ctypes

    class Driver:
        def __init__(self, name, *arguments, **keywords):
            assert name == "libcuda.so.1", name

    real, ctypes.CDLL = ctypes.CDLL, Driver
    import chainer_jo
    ctypes.CDLL = Driver
"""


@pytest.mark.parametrize("module, reason", [
    ("__version__ = '14.2.0'\nraise ImportError('libcublas.so.13: no such file\\nmore')",
     "libcublas.so.13: no such file"),
    # As for want of a folder for compiled kernels.
    ("open('/proc/nothing', 'w')", "/proc/nothing: No such file or directory, "
     "expected a folder that CuPy can keep compiled kernels in; CUPY_CACHE_DIR names it"),
    (None, "No module named 'cupy'; pip install 'chainer_jo[gpu]' for CUDA 12, "
           "'chainer_jo[gpu13]' for CUDA 13"),
])  # fmt: skip
def test_why_no_gpu_is_used_though_there_is_a_driver(tmp_path, module, reason):
    """A machine with a driver where CuPy, or a library that it needs, is missing."""
    if module:
        (tmp_path / "cupy.py").write_text(module)
    script = """
        import logging
        from chainer_jo import _compat
        from chainer_jo.reproduction.commands import script_flags
        from chainer_jo.reproduction.commands.script_flags import InMemory
        from chainer_jo.errors import UserError

        logging.basicConfig(format="note: %(message)s", stream=sys.stdout)
        assert script_flags.parse("", ["--dry-run"], InMemory()).device == "cpu"
        try:
            script_flags.parse("", ["--device", "cuda"], InMemory())
        except UserError as error:
            print(error)
        assert script_flags.parse("", ["--device", "cpu"], InMemory()).device == "cpu"
    """
    hidden = "import sys" if module else HIDE.replace("numpy.distutils", "cupy")
    printed = run(hidden, DRIVER, script, argument="", path=str(tmp_path))
    assert printed.splitlines() == [
        f"note: device cpu despite an NVIDIA driver: {reason}",
        f"--device cuda: expected a CUDA GPU that CuPy can use ({reason})",
    ]


def test_cupy_that_is_there_already_stays(tmp_path):
    (tmp_path / "cupy.py").write_text("")
    script = """
        import sys, cupy, chainer_jo
        assert sys.modules["cupy"] is cupy and cupy.__file__
    """
    run(NO_DRIVER, script, argument="", path=str(tmp_path))


def test_weights_are_float32_whatever_the_shell_says():
    script = "import chainer_jo, chainer; print(chainer.config.dtype)"
    env = processes.environment(CHAINER_DTYPE="float16")
    assert "float32" in processes.run([sys.executable, "-c", script], env=env).stdout


@pytest.mark.parametrize("part", ["data", "engine", "method", "relabel", "reproduction"])
def test_a_package_without_its_init(part):
    """A folder called chainer_jo beside a script hides it. NumPy would not be interrupted well."""
    code = """
        import importlib, sys, types
        sys.modules["chainer_jo"] = types.ModuleType("chainer_jo")
        sys.modules["chainer_jo"].__path__ = ["chainer_jo"]
        importlib.import_module(sys.argv[1])
        assert "numpy" not in sys.modules
        import chainer
    """
    run(code, argument=f"chainer_jo.{part}")


def test_a_python_without_liblzma():
    """Only packed files need it."""
    code = """
        import sys
        sys.modules["_lzma"] = None
        import chainer_jo.relabel.correction, pack, pathlib, pytest
        with pytest.raises(ValueError, match="runs.jsonl.xz: damaged .import of _lzma"):
            pack.pack(None, pathlib.Path(sys.argv[1]))
    """
    run(code, argument="x", path="tools")


def test_as_strided_which_reads_sctypes():
    x = chainer.Variable(np.arange(5, dtype="f"))
    y = F.as_strided(x, (4, 2), (1, 1), 0)
    y.grad = np.ones((4, 2), "f")
    y.backward()
    np.testing.assert_array_equal(x.grad, [1, 2, 2, 2, 1])


def test_resize_images_which_reads_float():
    x = np.arange(4, dtype="f").reshape(1, 1, 2, 2)
    expected = [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]]
    np.testing.assert_array_equal(F.resize_images(x, (3, 3)).array[0, 0], expected)


def test_a_script_that_lists_or_refuses_loads_no_large_library():
    """Chainer, SciPy and Matplotlib take longer than the rest of a dry run."""
    script = """
        import runpy, sys
        for flags in ("--help", "--trials 0", "--dry-run --results results/reference"):
            sys.argv = ["table1.py", *flags.split()]
            try:
                runpy.run_path("reproduce/table1.py", run_name="__main__")
            except SystemExit as ended:
                print("ended with", ended.code)
            assert not {"chainer", "scipy", "matplotlib"} & {*sys.modules}, flags
    """
    printed = run(NO_DRIVER, script, argument="", path=str(processes.ROOT))
    assert [printed.count(f"ended with {code}\n") for code in (0, 2)] == [1, 1]
    assert "54 runs, 0 to do" in printed


def test_a_plan_of_all_scripts_loads_no_chainer():
    plan = ["--dry-run", "--preset", "digits", "--device", "cpu", "--results", "results/reference"]
    command = [sys.executable, "-X", "importtime", "reproduce/all.py", *plan]
    said = processes.run(command, cwd=processes.ROOT)
    loaded = {line.rpartition("|")[2].strip() for line in said.stderr.splitlines()}
    assert "355 runs" in said.stdout and "numpy" in loaded and "chainer" not in loaded
