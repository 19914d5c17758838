"""Imports between the subpackages point one way, as the map in docs/extending.md says."""

import ast
from pathlib import Path

import pytest
from processes import ROOT

HELPERS = {"errors", "files", "seeds", "cores", "child_processes", "command_line", "_compat"}
HELPERS |= {"devices", "text"}
#: The subpackages that each one imports; those below them may be imported, too.
BELOW = {
    "engine": (),
    "data": (),
    "method": ("engine", "data"),
    "paper": (),
    "runs": ("method", "paper"),
    "report": ("runs",),
    "commands": ("report",),
    "relabel": ("method",),
}


def allowed(subpackage: str) -> set[str]:
    """The subpackages that files of a subpackage may import, itself among them."""
    return {subpackage}.union(*map(allowed, BELOW[subpackage]))


def imported(source: str) -> set[str]:
    """The modules and names of the package that a file imports, from "chainer_jo." on."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("chainer_jo.") for name in names if name.startswith("chainer_jo.")}


def crossings(subpackage: str, source: str) -> set[str]:
    """Imports that cross a border upwards."""
    may = HELPERS | allowed(subpackage)
    return {name for name in imported(source) if name.partition(".")[0] not in may}


@pytest.mark.parametrize("subpackage", BELOW)
def test_no_file_imports_from_above(subpackage):
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "chainer_jo" / subpackage).rglob("*.py")
        for name in crossings(subpackage, path.read_text())
    }
    assert not wrong


def test_every_folder_is_a_subpackage_and_helpers_import_no_other():
    package = ROOT / "chainer_jo"
    assert {path.parent.name for path in package.glob("*/__init__.py")} == set(BELOW)
    for name in HELPERS:
        names = imported((package / f"{name}.py").read_text())
        assert {each.partition(".")[0] for each in names} <= HELPERS


def test_an_import_from_above_is_noticed():
    source = "from chainer_jo.method.cnn_crf import CRFLoss\nfrom chainer_jo.runs import store\n"
    assert crossings("method", source) == {"runs.store"}
    assert crossings("engine", source) == {"runs.store", "method.cnn_crf.CRFLoss"}
    assert not crossings("report", source)


def test_no_circle():
    """Among modules, whichever subpackage they are in; relabel's imports within functions and for
    types count, too."""
    package = ROOT / "chainer_jo"
    modules = {_name(path): path for path in package.rglob("*.py")}
    graph = {
        name: {_module(each, modules) for each in _followed(path)} - {name, ""}
        for name, path in modules.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " > ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for each in sorted(graph[name]):
                visit(each, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT / "chainer_jo").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(name: str, modules: dict) -> str:
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def _followed(path: Path) -> set[str]:
    """What a file imports when it is loaded; a file of relabel, also later."""
    if path.is_relative_to(ROOT / "chainer_jo" / "relabel"):
        return imported(path.read_text())
    tree = ast.parse(path.read_text())
    body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return imported(ast.unparse(ast.Module(body, [])))
