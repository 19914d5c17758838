"""The notebook runs from its first cell to its last, and is committed with what its cells show."""

import re
import shlex
import shutil
import tomllib

import pytest
from processes import ROOT

from chainer_jo.relabel.read import lite0

nbformat = pytest.importorskip("nbformat", reason="extra test")
nbclient = pytest.importorskip("nbclient", reason="extra test")
NOTEBOOK = "joint_optimization.ipynb"


def shown(notebook):
    """Per code cell, the kinds of its outputs on standard output: pictures and lines."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        {kind for out in cell.outputs if out.get("name") != "stderr"
         for kind in out.get("data", {"line": ""})}
        for cell in cells
    ]  # fmt: skip


@pytest.mark.skipif(not lite0.installed(), reason=f"no package {lite0.PACKAGE}")
def test_the_notebook_runs_and_shows_what_is_committed(tmp_path, monkeypatch):
    """With a fifth of its epochs and photographs."""
    monkeypatch.delenv("MPLBACKEND")  # pictures are shown in the notebook
    folder = shutil.copytree(ROOT / "examples", tmp_path / "examples")
    committed = nbformat.read(folder / NOTEBOOK, as_version=4)
    assert 10 <= len(committed.cells) <= 20
    text = (folder / NOTEBOOK).read_text("utf-8")
    for whole, fifth in (("70, 25, 42", "14, 5, 8"), ("range(200)", "range(40)")):
        assert text.count(whole) == 1
        text = text.replace(whole, fifth)
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    there = {"metadata": {"path": folder}}
    nbclient.NotebookClient(notebook, timeout=600, resources=there).execute()
    assert shown(notebook) == shown(committed)
    assert sum("image/png" in kinds for cell in shown(notebook) for kinds in cell) == 5


def test_the_first_cell_installs_the_clone():
    """With the setuptools that the package is built with, and extras that it has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    first = nbformat.read(ROOT / "examples" / NOTEBOOK, as_version=4).cells[1].source
    source = re.search('SOURCE = "(.*)"', first)[1]
    build, package = (shlex.split(line) for line in re.findall("%pip install (.*)", first))
    assert set(project["build-system"]["requires"]) <= set(build)
    folder, extras = re.fullmatch(r"(.*)\[(.*)\]", package[-1].format(SOURCE=source)).groups()
    assert ROOT.samefile(ROOT / "examples" / folder)
    assert set(extras.split(",")) <= project["project"]["optional-dependencies"].keys()
