"""Imports between the parts of the package point one way, as docs/extending.md says."""

import ast
from graphlib import CycleError, TopologicalSorter

import pytest
from processes import ROOT

PACKAGE = ROOT / "chainer_jo"
#: The parts, and for each the parts that it imports; it may import those below them, too.
BELOW = {
    "engine": (),
    "data": (),
    "method": ("engine", "data"),
    "relabel.read": ("method",),
    "relabel.estimate": ("method",),
    "relabel.outcome": ("relabel.read", "relabel.estimate"),
    "relabel.write": ("relabel.outcome",),
    "relabel.show": ("relabel.outcome",),
    "relabel": ("relabel.write", "relabel.show"),
    "reproduction.trials": (),
    "reproduction.agreement": ("reproduction.trials",),
    "reproduction.paper": (),
    "reproduction.experiments": ("method", "reproduction.paper"),
    "reproduction.running": ("reproduction.experiments",),
    "reproduction.claims": ("reproduction.paper", "reproduction.trials"),
    "reproduction.tables_and_figures": ("reproduction.running", "reproduction.claims"),
    "reproduction.commands": ("reproduction.tables_and_figures", "reproduction.agreement"),
}
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
#: Modules of the package's own folder, which every part may import.
HELPERS = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"} | {"__version__"}


def part(name: str) -> str:
    """The part or top-level helper that a module or one of its names belongs to."""
    own = name.split(".")
    two = ".".join(own[:2])
    return two if two in BELOW or own[0] == "reproduction" else own[0]


def allowed(name: str) -> set[str]:
    """The parts that files of a part may import, itself among them."""
    return {name}.union(*map(allowed, BELOW[name]))


def imported(source: str) -> set[str]:
    """Modules and names of the package that a file imports anywhere: at its top, within functions,
    for types only."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("chainer_jo.") for name in names if name.startswith("chainer_jo.")}


def crossings(of: str, source: str) -> set[str]:
    """Imports that cross a border upwards."""
    may = HELPERS | allowed(of)
    return {name for name in imported(source) if part(name) not in may}


@pytest.mark.parametrize("name", BELOW)
def test_no_file_imports_from_above(name):
    files = {module: path for module, path in MODULES.items() if part(module) == name}
    assert files
    wrong = {
        f"{module}: {each}"
        for module, path in files.items()
        for each in crossings(name, path.read_text())
    }
    assert not wrong


def test_every_module_is_in_a_part_and_helpers_import_no_part():
    others = {module for module in MODULES if part(module) not in {*BELOW, *HELPERS}}
    assert others == {"__init__", "__main__", "reproduction"}
    for name in HELPERS & MODULES.keys():
        assert {each.partition(".")[0] for each in imported(MODULES[name].read_text())} <= HELPERS


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; empty if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_circle():
    """Imports within functions and for types included; a package's own ``__init__`` is left out."""
    graph = {
        name: {_module(each) for each in imported(path.read_text())} - {name, ""}
        for name, path in MODULES.items()
        if path.name != "__init__.py"
    }
    inits = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert not circle({name: those - inits for name, those in graph.items()})
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == {"b", "c"}


def _module(name: str) -> str:
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name
