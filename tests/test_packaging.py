"""What is installed: pyproject's ranges, pip's pins, conda's file, and the set-up commands."""

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint, packages_distributions
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from processes import ROOT, run

import chainer_jo

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
INSTALLED = ("cpu", "features", "weights", "cluster")
ALWAYS = PROJECT["dependencies"] + sum(map(EXTRAS.get, INSTALLED), [])
WANTED = {
    "requirements.txt": ALWAYS,
    "requirements-gpu12.txt": [*ALWAYS, *EXTRAS["gpu"]],
    "requirements-gpu13.txt": [*ALWAYS, *EXTRAS["gpu13"]],
    "requirements-test.txt": EXTRAS["test"],
}
PARTS = ("chainer_jo", "reproduce", "tools", "benchmarks", "examples")
FILES = ["requirements-build.txt", *WANTED]

# conda-forge's names where they are not PyPI's, and what PyPI has under another number, or not.
CONDA_NAMES = {"matplotlib-base": "matplotlib"}
ONLY_CONDA = {"python", "pip", "onednn-cpu-omp"}


def blocks(file: str) -> list[str]:
    """The entries of a requirements file, each with its hashes in one string."""
    return [block for block in re.split(r"\n(?=\S)", (ROOT / file).read_text()) if block.strip()]


def pins(file: str) -> dict[str, str]:
    found = {}
    for block in blocks(file):
        requirement = Requirement(block.split("\\")[0])
        (pin,) = requirement.specifier
        assert pin.operator == "==", block
        found[canonicalize_name(requirement.name)] = pin.version
    return found


def environment() -> dict[str, str]:
    """The range of every package of conda's and of its pip section, by PyPI's name."""
    text = (ROOT / "environment.yml").read_text().partition("dependencies:")[2]
    packages = re.findall(r"^ *- ([\w-]+)([<>=].*)?$", text, re.M)
    return {canonicalize_name(CONDA_NAMES.get(name, name)): range for name, range in packages}


def imports(tree: ast.AST) -> Iterator[str]:
    """The top-level modules that a source file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("file", FILES)
def test_requirements_pin_what_pyproject_asks_for(file):
    """By hash, and without addresses."""
    pinned = pins(file)
    for wanted in map(Requirement, WANTED.get(file, ())):
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, wanted
    for block in blocks(file):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
        rest = re.sub(r"--hash=sha256:[0-9a-f]{64}", "", block)
        assert not re.search(r"//|--|@|#", rest), block


def test_requirements_files_agree():
    """One version of a package in all files; only tests need what only they name."""
    common, tools, build = (pins(f"requirements{of}.txt") for of in ("", "-test", "-build"))
    for others in (tools, build, pins("requirements-gpu12.txt"), pins("requirements-gpu13.txt")):
        assert all(others[name] == common[name] for name in common.keys() & others)
    assert not common.keys() & {"pytest", "mypy", "ruff", "ipykernel", "nbclient", "pandas"}


def test_conda_environment_has_the_ranges_of_pyproject():
    """And tools, on which no number depends, in any version: conda-forge may be behind PyPI."""
    conda = environment()
    assert conda["python"][1:] in Requirement(f"python{PROJECT['requires-python']}").specifier
    for wanted in map(Requirement, ALWAYS):
        if wanted.name != "onednn-cpu-gomp":
            assert SpecifierSet(conda[canonicalize_name(wanted.name)]) == wanted.specifier, wanted
    assert {conda[Requirement(tool).name] for tool in EXTRAS["test"]} == {""}
    assert conda.keys() - ONLY_CONDA <= {*pins("requirements.txt"), *pins("requirements-test.txt")}


def test_whatever_is_imported_is_asked_for():
    asked = {canonicalize_name(Requirement(text).name) for text in sum(EXTRAS.values(), ALWAYS)}
    sources = [path for part in PARTS for path in (ROOT / part).rglob("*.py")]
    imported = {name for path in sources for name in imports(ast.parse(path.read_text()))}
    assert {"chainer", "numpy", "sklearn", "PIL"} <= imported
    for module, (distribution, *_) in packages_distributions().items():
        if module in imported - {"chainer_jo"}:
            assert canonicalize_name(distribution) in asked, module


def test_the_whole_package_is_installed():
    find = pytest.importorskip("setuptools").find_packages
    package, setup = ROOT / "chainer_jo", PYPROJECT["tool"]["setuptools"]
    folders = {path.parent for path in package.rglob("*.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert names == set(find(str(ROOT), include=["chainer_jo*"]))
    (globs,) = setup["package-data"].values()
    files = {path for path in package.rglob("*") if path.is_file()}
    no_code = {path for path in files if path.suffix not in (".py", ".pyc")}
    assert no_code == {path for glob in globs for path in package.glob(glob)}


def test_make_takes_the_pythons_that_the_package_names():
    (expression,) = re.findall(r"sys\.exit\(not (.+)\)'", (ROOT / "Makefile").read_text())
    versions = ((3, minor) for minor in range(30))
    taken = [v for v in versions if eval(expression, {"sys": SimpleNamespace(version_info=v)})]
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert taken == [(3, int(minor)) for minor in named]


def test_an_environment_that_was_copied_or_moved_is_set_up_again(tmp_path):
    """It would run the code of the checkout that it was set up in."""
    for place, again in ((ROOT, False), (tmp_path, True)):
        (tmp_path / ".stamp").write_text(f"{place}\n")
        said = run(["make", "-n", f"VENV={tmp_path}", "setup"], cwd=ROOT).stdout
        assert ("pip install" in said) == again


def test_the_command_is_there_in_one_version_everywhere():
    for target in PROJECT["scripts"].values():
        assert callable(EntryPoint("", target, "").load())
    citation = (ROOT / "CITATION.cff").read_text()
    (cited,) = re.findall(r"^version: (.+)$", citation, re.M)
    assert chainer_jo.__version__ == PROJECT["version"] == cited
    assert "1803.11364" in citation and "10.1109/CVPR.2018.00582" in citation
