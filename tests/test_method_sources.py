"""Origin of a result: the digest of the method's sources, the commit, and the note about results of
other code."""

import ast
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import processes
import pytest
from processes import needs_git, run

import chainer_jo
from chainer_jo.method.label_sources import SOURCES, Drawn
from chainer_jo.method.objectives import OBJECTIVES
from chainer_jo.method.soft_labels import RULES
from chainer_jo.reproduction.running import provenance
from chainer_jo.reproduction.running.provenance import other_code

SOURCE = """
def rule(labels, mean, top=None):
    labels[...] = mean ** 2
"""


@pytest.fixture
def digest(monkeypatch):
    """The digest, had the package these sources besides."""

    def compute(*sources):
        monkeypatch.setattr(provenance, "_SOURCES", [("a.py", s.encode()) for s in sources])
        provenance._package.cache_clear()
        return provenance.sources_digest()

    yield compute
    monkeypatch.undo()
    provenance._package.cache_clear()


def test_code_counts_and_words_about_it_do_not(digest):
    before = digest(SOURCE)
    assert digest(f'"""A docstring."""\n{SOURCE}  # a comment\n') == before
    assert digest(SOURCE.replace("    labels", '    """What it does."""\n\n    labels')) == before
    assert digest(SOURCE.replace("** 2", "** 3")) != before
    assert digest(SOURCE.replace("None", "True")) != before
    assert digest(SOURCE, SOURCE) != before


def test_the_python_that_reads_it_does_not_count(digest, monkeypatch):
    """Python 3.12 ends what follows a colon in an f-string with an empty constant, 3.11 and 3.13 do
    not."""
    source = "def shown(x, width): return f'{x:.<{width}} of {x}'\n"
    before = digest(source)

    def as_in_312(text):
        tree = ast.parse(text)
        specs = [n.format_spec for n in ast.walk(tree) if isinstance(n, ast.FormattedValue)]
        for spec in filter(None, specs):
            spec.values = [v for v in spec.values if getattr(v, "value", None) != ""]
            spec.values.append(ast.Constant(""))
        return tree

    monkeypatch.setattr(provenance, "ast", SimpleNamespace(**{**vars(ast), "parse": as_in_312}))
    assert digest(source) == before
    assert digest(source.replace(" of ", " ")) != before


def test_all_parts_are_read():
    """And nothing that shows results, or describes and keeps runs."""
    names = {name for name, _ in provenance._SOURCES}
    for part in ("method", "engine", "data"):
        files = (provenance.ROOT / part).rglob("*.py")
        assert {path.relative_to(provenance.ROOT).as_posix() for path in files} <= names
    assert "seeds.py" in names
    others = {name for name in names if name.startswith(("reproduction/", "relabel/"))}
    assert others == {f"reproduction/running/{name}.py" for name in ("run", "starting_labels")}


CALLABLES = f"""
import textwrap
from functools import lru_cache, partial, wraps
{SOURCE}
def wrapped(function):
    return wraps(function)(lambda *arguments: function(*arguments))

class Mine:
    shortened = textwrap.shorten
    def __call__(self, labels, mean):
        return 2

class Labels:
    def labels(self):
        return 2

def noise():
    return Drawn("mn", rule, partial(rule))

class Child(Base):
    strength = 2

BOUND = partial(elsewhere, 2)
"""


class Mine:
    """Its functions are of this file, which stays the same."""

    def labels(self):
        return self.strength


@pytest.mark.parametrize("registry", (RULES, OBJECTIVES, SOURCES), ids=lambda each: each.what)
@pytest.mark.parametrize("entry", (
    "rule", "partial(rule)", "lru_cache(rule)", "wrapped(rule)", "Mine()", "Labels()", "Labels",
    "noise()", "Child()", "BOUND",
))  # fmt: skip
def test_the_file_of_every_kind_of_entry_counts(tmp_path, monkeypatch, entry, registry):
    path = tmp_path / "mine.py"

    def digest_with(source):
        path.write_text(source)
        space = {"Drawn": Drawn, "Base": Mine, "elsewhere": result, "registry": registry}
        monkeypatch.setitem(registry, "mine", None)
        exec(compile(f"{source}\nregistry['mine'] = {entry}", str(path), "exec"), space)
        return provenance.sources_digest(), provenance.code()

    plain = provenance.sources_digest()
    before, code = digest_with(CALLABLES)
    assert " with mine.py" in code and "textwrap.py" not in code
    assert digest_with(CALLABLES + "# a comment\n") == (before, code)
    path.write_text(SOURCE[:15])  # edited while it runs, half a function even
    assert (provenance.sources_digest(), provenance.code()) == (before, code)
    assert len({plain, before, digest_with(CALLABLES.replace("2", "3"))[0]}) == 3


def test_the_file_that_adds_an_entry_of_the_package_counts(tmp_path, monkeypatch):
    path, digests = tmp_path / "mine.py", {provenance.sources_digest()}
    monkeypatch.setitem(RULES, "mine", None)
    for statement in ("RULES['mine'] = RULES['soft']", "RULES |= {'mine': RULES['hard']}"):
        path.write_text(statement)
        exec(compile(statement, str(path), "exec"), {"RULES": RULES})
        digests.add(provenance.sources_digest())
    assert len(digests) == 3


def result(sources, commit="abc"):
    return {"provenance": {"commit": commit, **({"sources": sources} if sources else {})}}


def test_results_of_other_code_are_one_line():
    mine = result(provenance.sources_digest())
    assert other_code([]) == other_code([mine, mine]) == ""
    note = other_code([mine, result("other", "c1"), result(None, None)])
    assert note.startswith("2 of 3 finished runs were made by other code")
    assert "c1, unknown" in note and "\n" not in note


PROGRAM = """
import subprocess, sys
from chainer_jo.reproduction.running import provenance
import chainer
subprocess.run(sys.argv[1:], check=True)
print(provenance.provenance(chainer.get_device("@numpy"), None)["commit"])
"""


@pytest.fixture
def repository(tmp_path):
    """A new repository that contains the package, and git in it."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return run(["git", "-C", tmp_path, *identity, *words]).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    install(tmp_path)
    git("add", "chainer_jo")
    git("commit", "-m", "second")
    return tmp_path, git


def commit(folder, *meanwhile, **environment):
    """Output of a process that has loaded the package below ``folder``, after a command."""
    command = [sys.executable, "-c", PROGRAM, *(meanwhile or ["true"])]
    env = processes.environment() | {"PYTHONPATH": str(folder), **environment}
    return run(command, env=env, cwd=folder).stdout.strip()


def install(folder):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(chainer_jo.__file__).parent, folder / "chainer_jo", ignore=ignored)


@needs_git
def test_the_commit_is_that_of_the_code_that_was_loaded(repository):
    folder, git = repository
    loaded = git("rev-parse", "--short=12", "HEAD")
    later = ["git", "-C", str(folder), "reset", "--soft", "HEAD~1"]
    assert commit(folder, *later) == loaded
    git("commit", "-m", "third")
    changed = folder / "chainer_jo" / "errors.py"
    changed.write_text(changed.read_text() + "# changed\n")
    assert commit(folder).endswith("-dirty")


@needs_git
def test_a_repository_that_surrounds_the_package_or_is_named_elsewhere_is_not_its_origin(
    repository,
):
    folder, _ = repository
    packages = folder / ".venv" / "site-packages"
    install(packages)
    assert commit(packages, GIT_DIR=str(folder / ".git")) == "None"
