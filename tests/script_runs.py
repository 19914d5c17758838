"""A small script, as the scripts in reproduce/ call it, in this process."""

from functools import partial

from chainer_jo.commands import main
from chainer_jo.paper import tables
from chainer_jo.report.label_curves import label_figure
from chainer_jo.report.table_layouts import comparison_table

#: The smallest table: three runs.
SMALL = ("--noise-rates", "0.5", "--trials", "1")


def table1(study):
    return comparison_table(study, tables.TABLE1, "symmetric")


figure5 = partial(label_figure, number=5, what="Test accuracy", key="test")


def run(build, folder, *flags):
    """The script in this process; returns its exit code."""
    argv = ["--preset", "tiny", "--results", str(folder / "results"),
            "--figures", str(folder / "figures"), "--device", "cpu", *flags]  # fmt: skip
    try:
        main(build, "test", argv)
    except SystemExit as end:
        return end.code
    return 0


def refused(capsys):
    """The one line that a script has ended with."""
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line
