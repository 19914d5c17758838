"""The origin of numbers: commit, a digest of the code that they follow from, versions, device."""

import ast
import contextlib
import functools
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from types import CodeType

import chainer
import numpy as np

import chainer_jo
from chainer_jo import files
from chainer_jo.datasets import noise
from chainer_jo.experiments.store import RunStore
from chainer_jo.functions.providers import Provider
from chainer_jo.training import labels


def _commit() -> str | None:
    """The commit of the source tree, with ``-dirty`` if its code was changed since. Where git does
    not keep the code (a repository may surround the environment that it is installed in), what the
    variable CHAINER_JO_COMMIT says, or None: a machine on loan may have the files alone."""
    root = Path(chainer_jo.__file__).parent.parent
    named = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # by a hook, say: another repository's
    environment = {name: value for name, value in os.environ.items() if name not in named}

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *words],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "chainer_jo/__init__.py")
        changed = git(
            "status", "--porcelain", "--untracked-files=no", "--", "chainer_jo", "reproduce"
        )
        return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("CHAINER_JO_COMMIT")


#: Asked for as the code is loaded: when a run ends, the source tree may be at another commit.
COMMIT = _commit()


def code() -> str:
    """Which code this process runs, in words; workers elsewhere are asked whether it is theirs."""
    scripts = ", ".join(sorted(path.name for path in added()))
    with_scripts = f" with {scripts}" if scripts else ""
    digest = sources_digest()
    return f"chainer_jo {chainer_jo.__version__}, commit {COMMIT}, code {digest}{with_scripts}"


@functools.cache
def cpu_name() -> str:
    """The processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def device_name(device: chainer.backend.Device) -> str:
    """The name of the GPU, or of the processor."""
    if device.xp is np:
        return cpu_name()
    return device.xp.cuda.runtime.getDeviceProperties(device.device.id)["name"].decode()


def collect(root: Path) -> dict:
    """The origin of everything below a results folder, from the results of its runs."""
    results = RunStore(root).results()

    def distinct(values: Iterable) -> list:
        texts = {json.dumps(value, sort_keys=True) for value in values}
        return [json.loads(text) for text in sorted(texts)]

    origins = [result["provenance"] for result in results]
    codes = [code for origin in origins for code in _codes(origin)]
    return {
        "runs": len(results),
        "hours": round(sum(result["seconds"] for result in results) / 3600, 3),
        "seeds": sorted({int(result["id"].rsplit("-s", 1)[1].split("-")[0]) for result in results}),
        "data": files.read_json(root / "data.json", missing=None),
        "commits": distinct(code.get("commit") for code in codes),
        "sources": sorted({code.get("sources") or "unknown" for code in codes}),
        "versions": distinct(code["versions"] for code in codes if "versions" in code),
        "devices": distinct(code["device"] for code in codes if "device" in code),
        "engines": distinct(code["engine"] for code in codes if "engine" in code),
    }


def known(root: Path) -> dict:
    """`collect`, or what was collected when there were runs, which need not be there any more;
    empty if nothing is known."""
    if RunStore(root).results():
        return collect(root)
    return files.read_json(root / "provenance.json", missing={})


def _codes(origin: dict) -> list[dict]:
    """All that computed a run, from its provenance; some runs keep of other code no device."""
    return [origin, *origin.get("other_code", [])]


def devices(result: dict) -> set[str]:
    """Names of all that computed a run."""
    return {code["device"] for code in _codes(result["provenance"]) if "device" in code}


def other_code(results: Sequence[dict]) -> str:
    """One line about those results that were made by other code than this, wholly or in part; empty
    if none was."""
    mine = sources_digest()
    by_result = [_codes(result.get("provenance", {})) for result in results]
    others = [
        found
        for codes in by_result
        if (found := [code for code in codes if code.get("sources") != mine])
    ]
    if not others:
        return ""
    commits = sorted({code.get("commit") or "unknown" for codes in others for code in codes})
    shown = ", ".join(commits[:3]) + (", ..." if len(commits) > 3 else "")
    return (
        f"{len(others)} of {len(results)} finished runs were made by other code than this "
        f"(commit {shown}), wholly or in part"
    )


def computing(device: chainer.backend.Device, provider: Provider | None) -> dict:
    """What computes here: commit, digest of the method's sources, device, engine with its threads
    (on a CPU), and versions, as JSON values."""
    packages = ["chainer", "numpy"] + ([] if device.xp is np else ["cupy-cuda12x", "cupy-cuda13x"])
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "commit": COMMIT,
        "sources": sources_digest(),
        "device": device_name(device),
        "engine": provider.name if provider else "stock",
        "versions": versions | (provider.versions if provider else {}),
        **({"threads": provider.threads} if provider and provider.threads else {}),
    }


def provenance(
    device: chainer.backend.Device, provider: Provider | None, computed: Sequence[dict] = ()
) -> dict:
    """What computes here (`computing`), as JSON values; and a digest of what the engine has chosen
    by measuring, and what else has ``computed``, if anything."""
    here = computing(device, provider)
    telling = ("sources", "device", "engine", "versions", "threads")
    others = [each for each in computed if any(each.get(key) != here.get(key) for key in telling)]
    return {
        **here,
        **({"choices": provider.choices} if provider and provider.choices else {}),
        **({"other_code": others} if others else {}),
    }


#: Folders and files that compute; the rest of the package chooses runs and shows results.
PARTS = (
    "datasets",
    "functions",
    "links",
    "training",
    "seeds.py",
    "experiments/pseudo.py",
    "experiments/run.py",
    "experiments/run_parts.py",
    "experiments/task.py",
)
ROOT = Path(chainer_jo.__file__).parent


#: Names and contents, read as the code is loaded: when a run ends, the tree may be another one.
_SOURCES = [
    (path.relative_to(ROOT).as_posix(), path.read_bytes())
    for part in (ROOT / name for name in PARTS)
    for path in (sorted(part.rglob("*.py")) if part.is_dir() else [part])
]


def sources_digest() -> str:
    """12 hexadecimal digits of the package's code, without comments, docstrings and layout, and of
    the files that rules and noises were added from."""
    codes = sorted(filter(None, added().values()))
    return hashlib.sha256("\0".join([_package(), *codes]).encode()).hexdigest()[:12]


def added() -> dict[Path, str]:
    """The files that rules and noises were added from, with their code: those of the registries'
    functions that are not the package's."""
    models = (f for model in noise.MODELS.values() for f in (model.draw, model.matrix))
    codes = (getattr(f, "__code__", None) for f in (*labels.RULES.values(), *models))
    found = {Path(code.co_filename): code for code in codes if code}
    return {path: _added(path, code) for path, code in found.items() if ROOT not in path.parents}


@functools.cache
def _added(path: Path, loaded: CodeType) -> str:
    """The code of the file that ``loaded`` is from, empty if there is none: read once, before
    anything is computed, since what is edited later is not what runs."""
    return _code(path.read_bytes()) if path.exists() else ""


@functools.cache
def _package() -> str:
    return "\0".join(f"{name}\0{_code(source)}" for name, source in _SOURCES)


def _code(source: bytes) -> str:
    parts: list[str] = []
    _write(ast.parse(source), parts.append)
    return "".join(parts)


def _write(node, add: Callable[[str], None]) -> None:
    """Adds the syntax tree as text. Fields that say nothing are left out: later versions of Python
    have more of them."""
    if isinstance(node, list):
        for item in node:
            _write(item, add)
    elif isinstance(node, ast.AST):
        add(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if name == "body" and _has_docstring(node):
                value = value[1:]
            if isinstance(node, ast.JoinedStr):  # 3.12 ends some with an empty one
                value = [v for v in value if getattr(v, "value", None) != ""]
            if value is not None and value != []:
                add(f" {name}=")
                _write(value, add)
        add(")")
    else:
        add(repr(node))


def _has_docstring(node: ast.AST) -> bool:
    documented = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
