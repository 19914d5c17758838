"""Which code a result is said to come from."""

import shutil
import sys
from pathlib import Path

import processes
import pytest
from processes import needs_git, run

import chainer_jo

pytestmark = needs_git

PROGRAM = """
import subprocess, sys
from chainer_jo.reproduction.running import provenance
import chainer
subprocess.run(sys.argv[1:], check=True)
print(provenance.provenance(chainer.get_device("@numpy"), None)["commit"])
"""


@pytest.fixture
def repository(tmp_path):
    """A new repository, and git in it."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        return run(["git", "-C", tmp_path, *identity, *words]).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    return tmp_path, git


def commit(folder, *meanwhile, **environment):
    """What a process that has loaded the package below ``folder`` says after a command."""
    command = [sys.executable, "-c", PROGRAM, *(meanwhile or ["true"])]
    env = processes.environment() | {"PYTHONPATH": str(folder), **environment}
    return run(command, env=env, cwd=folder).stdout.strip()


def install(folder):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(chainer_jo.__file__).parent, folder / "chainer_jo", ignore=ignored)


def test_the_commit_is_that_of_the_code_that_was_loaded(repository):
    folder, git = repository
    install(folder)
    git("add", "chainer_jo")
    git("commit", "-m", "second")
    loaded = git("rev-parse", "--short=12", "HEAD")
    later = ["git", "-C", str(folder), "reset", "--soft", "HEAD~1"]
    assert commit(folder, *later) == loaded
    git("commit", "-m", "third")
    (folder / "chainer_jo" / "errors.py").write_text(
        "class UserError(ValueError): ...\nUnfinished = UserError\n"
    )
    assert commit(folder).endswith("-dirty")


def test_a_repository_that_surrounds_the_package_or_is_named_elsewhere_is_not_its_origin(
    repository,
):
    folder, git = repository
    install(folder)
    git("add", "chainer_jo")
    git("commit", "-m", "second")
    packages = folder / ".venv" / "site-packages"
    install(packages)
    assert commit(packages, GIT_DIR=str(folder / ".git")) == "None"
