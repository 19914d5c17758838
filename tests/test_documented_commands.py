"""Every code block of README and docs: Python is run; each command is run, run with --dry-run,
planned by make -n, or only listed."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import own_images
import pytest
from markdown_it import MarkdownIt
from processes import ROOT, run
from script_runs import script

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"^ *((?:\.venv/bin/)?python3? |chainer-jo |make |pip |conda |dask ).+$", re.M)
#: Beginnings of the other lines: settings of a shell, and programs of the system.
OTHERS = ("#", "xdg-open ", "closed=", "export ", "for ", "done", "umask ", "openssl ")
#: How each command is checked, by a part of it; the first that fits. Listed ones change an
#: environment, or need other machines or files that nobody can make offline.
CHECKS = {
    "chainer-jo example digits": "run",
    "relabel digits/labels.csv": "run",
    "predict corrected": "run",
    "reproduce/all.py --no-runs": "without runs",
    "reproduce/all.py --cluster": "listed",
    "reproduce/table": "dry run",
    "reproduce/all.py": "dry run",
    "examples/label_rule.py": "dry run",
    "reproduce/": "help",
    "tools/": "help",
    "relabel photos.csv": "listed",
    "make ": "plan",
    "pip ": "listed",
    "conda ": "listed",
    "dask ": "listed",
}


def blocks(language: str) -> list[tuple[str, str]]:
    """Page and content of the code blocks: "python", or "sh" with indented ones."""
    found = []
    for page in PAGES:
        for token in MarkdownIt().parse(page.read_text()):
            if token.type in ("fence", "code_block") and (token.info or "sh") == language:
                found.append((page.name, token.content.replace("\\\n", " ")))
    return found


def documented() -> list[str]:
    """Commands in code blocks, without comments, each once."""
    found = [match[0].strip() for _, block in blocks("sh") for match in COMMAND.finditer(block)]
    return sorted({command.partition("  #")[0].strip() for command in found})


def check(command: str) -> str:
    return next((how for part, how in CHECKS.items() if part in command), "unknown")


def checked(how: str) -> list[str]:
    return [command for command in documented() if check(command) == how]


def words(command: str) -> list[str]:
    """The words after python, with data by name: files need not exist."""
    python, *rest = shlex.split(command.replace("cifar10-jpeg.tar.xz", "cifar10-jpeg"))
    assert python.startswith((".venv/bin/python", "python"))
    return rest


def test_every_command_is_checked_in_one_way():
    assert len(documented()) > 30
    assert not checked("unknown")
    assert {check(command) for command in documented()} == set(CHECKS.values())
    lines = [line.strip() for _, block in blocks("sh") for line in block.splitlines()]
    rest = [line for line in lines if line and not COMMAND.match(line)]
    assert [line for line in rest if not line.startswith(OTHERS)] == []


@pytest.mark.parametrize(("page", "block"), blocks("sh"))
def test_a_shell_reads_the_block(page, block):
    run(["bash", "-n", "-c", block])


@pytest.mark.parametrize(("page", "block"), blocks("python"))
def test_python_runs_alone_as_printed(page, block, tmp_path):
    (tmp_path / "results").symlink_to(ROOT / "results")
    run([sys.executable, "-c", block], cwd=tmp_path)


@pytest.mark.parametrize("command", checked("dry run"))
def test_flags_are_those_of_the_script(command, tmp_path):
    if "--data" not in command and "--preset" not in command:
        command += " --preset paper"  # as with a GPU
    places = ["--results", tmp_path, "--figures", tmp_path, "--device", "cpu"]
    path, *flags = words(command)
    assert "to do" in script(ROOT / path, *flags, *places, "--dry-run")


@pytest.mark.parametrize("command", checked("without runs"))
def test_committed_results_need_no_data(command, tmp_path, monkeypatch):
    """Table 1 in place of everything, on a copy."""
    preset = re.search(r"--preset (\w+)", command)[1]
    shutil.copytree(ROOT / "results" / "reference" / preset, tmp_path / preset)
    places = ["--results", tmp_path, "--figures", tmp_path, "--device", "cpu"]
    monkeypatch.chdir(ROOT)
    path, *flags = words(command.replace("all.py", "table1.py"))
    script(ROOT / path, *flags, *places)
    table = Path("results", "reference", preset, "table1.md")
    assert (tmp_path / preset / "table1.md").read_bytes() == (ROOT / table).read_bytes()


@pytest.mark.parametrize("command", checked("help"))
def test_the_script_has_the_flags(command):
    path, *flags = words(command)
    if path == "-m":
        path = flags[0].replace(".", "/") + ".py"
    shown = script(ROOT / path, "--help")
    assert all(flag in shown for flag in re.findall(r"--[\w-]+", command))


@pytest.mark.parametrize("command", checked("plan"))
def test_make_has_the_target(command):
    target = shlex.split(command.partition("&&")[0])
    run([target[0], "--dry-run", *target[1:]], cwd=ROOT)


def test_own_images_from_example_to_prediction(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chain = sorted(
        checked("run"), key=lambda c: ("example", "relabel", "predict").index(c.split()[1])
    )
    assert len(chain) == 3
    for command in chain:
        assert own_images.run(*shlex.split(command)[1:]) == 0
    assert (tmp_path / "corrected" / "report.html").exists()
