"""Scripts in this process, and a small one, which is also a command with the preset ``tiny``."""

import runpy
import sys
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from unittest import mock

import pytest
from here import compute_here
from tiny import TINY

from chainer_jo.data import source
from chainer_jo.method.registry import Registry
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments import presets
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.tables_and_figures.label_curves import label_figure
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table

#: The smallest table: three runs.
SMALL = ("--noise-rates", "0.5", "--trials", "1")


def table1(study):
    return comparison_table(study, tables.TABLE1, "symmetric")


figure5 = partial(label_figure, number=5, what="Test accuracy", key="test")


def run(build, folder, *flags, main=main):
    """The script in this process; returns its exit code."""
    argv = ["--preset", "tiny", "--results", str(folder / "results"),
            "--figures", str(folder / "figures"), "--device", "cpu", *flags]  # fmt: skip
    try:
        main(build, "test", argv)
    except SystemExit as end:
        return end.code
    return 0


@contextmanager
def in_this_process():
    """Computes runs in this process, with the preset ``tiny``; then forgets what scripts added."""
    with ExitStack() as stack:
        for registry in (presets.PRESETS, source.DATA_SETS, *Registry.every):
            stack.enter_context(mock.patch.dict(registry))
        compute_here(stack.enter_context(pytest.MonkeyPatch.context()).setattr)
        presets.PRESETS["tiny"] = TINY
        yield


def script(path, *flags):
    """A script by its path, in this process with its runs; returns what it prints."""
    patched, printed = pytest.MonkeyPatch.context(), redirect_stdout(StringIO())
    with in_this_process(), patched as patch, printed as said:
        patch.delitem(sys.modules, "quick", raising=False)  # which adds a preset
        patch.setattr(sys, "argv", [str(path), *map(str, flags)])
        patch.syspath_prepend(path.parent)
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            assert not end.code
    return said.getvalue()


def refused(capsys):
    """The one line that a script has ended with."""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


if __name__ == "__main__":
    presets.PRESETS["tiny"] = TINY
    main(table1, "test")
