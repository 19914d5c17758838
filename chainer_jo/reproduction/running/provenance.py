"""The origin of numbers: commit, a digest of the code that they follow from, versions, device."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import chainer_jo
from chainer_jo import files
from chainer_jo.method.registry import Registry
from chainer_jo.reproduction.running.store import RunStore

if TYPE_CHECKING:
    import chainer

    from chainer_jo.engine.interface import Backend


def _commit() -> str | None:
    """The commit of the source tree, with ``-dirty`` if its code was changed since. For code
    outside git (also an environment inside another repository), the variable CHAINER_JO_COMMIT, or
    None."""
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


#: Read on import: when a run ends, the source tree may be at another commit.
COMMIT = _commit()


def code() -> str:
    """Version of the code that this process runs, in words, to be compared with a worker's."""
    scripts = ", ".join(sorted({path.name for path, _ in _registered()}))
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
    number = device.device.id  # type: ignore[attr-defined]
    return device.xp.cuda.runtime.getDeviceProperties(number)["name"].decode()


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
    """`collect`, or the file that an earlier `collect` wrote if the runs are gone; empty without
    either."""
    if RunStore(root).results():
        return collect(root)
    return files.read_json(root / "provenance.json", missing={})


def _codes(origin: dict) -> list[dict]:
    """Every process that computed a part of a run, from its provenance; older runs lack the device
    of other code."""
    return [origin, *origin.get("other_code", [])]


def devices(result: dict) -> set[str]:
    """Names of all devices that computed a run."""
    return {code["device"] for code in _codes(result["provenance"]) if "device" in code}


def other_code(results: Sequence[dict]) -> str:
    """Note on results that other code computed, wholly or in part; empty without such results."""
    mine = sources_digest()
    by_result = [_codes(result.get("provenance", {})) for result in results]
    others = [
        different
        for codes in by_result
        if (different := [code for code in codes if code.get("sources") != mine])
    ]
    if not others:
        return ""
    commits = sorted({code.get("commit") or "unknown" for codes in others for code in codes})
    shown = ", ".join(commits[:3]) + (", ..." if len(commits) > 3 else "")
    return (
        f"{len(others)} of {len(results)} finished runs were made by other code than this "
        f"(commit {shown}), wholly or in part"
    )


def computing(device: chainer.backend.Device, backend: Backend | None) -> dict:
    """Provenance of this process as JSON values: commit, digest of the method's sources, device,
    engine with its threads (on a CPU), and versions."""
    packages = ["chainer", "numpy"] + ([] if device.xp is np else ["cupy-cuda12x", "cupy-cuda13x"])
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "commit": COMMIT,
        "sources": sources_digest(),
        "device": device_name(device),
        "engine": backend.name if backend else "stock",
        "versions": versions | (backend.versions if backend else {}),
        **({"threads": backend.threads} if backend and backend.threads else {}),
    }


def provenance(
    device: chainer.backend.Device, backend: Backend | None, computed: Sequence[dict] = ()
) -> dict:
    """Provenance of a result as JSON values: `computing`, a digest of the choices that the engine
    made by measuring, and other processes that ``computed`` part of it, if any."""
    this = computing(device, backend)
    compared = ("sources", "device", "engine", "versions", "threads")
    others = [each for each in computed if any(each.get(key) != this.get(key) for key in compared)]
    return {
        **this,
        **({"choices": backend.choices} if backend and backend.choices else {}),
        **({"other_code": others} if others else {}),
    }


#: Folders and files that results follow from; the rest of the package chooses runs and shows them.
RESULTS_FOLLOW_FROM = (
    "engine",
    "data",
    "method",
    "seeds.py",
    "reproduction/running/run.py",
    "reproduction/running/starting_labels.py",
)
ROOT = Path(chainer_jo.__file__).parent
#: Python's own code, for example of data classes, is part of the version of Python.
STDLIB = Path(inspect.__file__).parent


#: Names and contents, read on import: when a run ends, the source tree may be at another commit.
_SOURCES = [
    (path.relative_to(ROOT).as_posix(), path.read_bytes())
    for source in (ROOT / name for name in RESULTS_FOLLOW_FROM)
    for path in (sorted(source.rglob("*.py")) if source.is_dir() else [source])
]


def sources_digest() -> str:
    """12 hexadecimal digits of the package's code, without comments, docstrings and layout, and of
    the files outside the package that define entries of registries."""
    files_of_entries = sorted({code for _, code in _registered()})
    return hashlib.sha256("\0".join([_package(), *files_of_entries]).encode()).hexdigest()[:12]


#: Code of each entry's files, by registry, name and identity; the entry is kept, so that its
#: identity is not given to another object.
_READ: dict[tuple[str, str, int], tuple[dict[Path, str], object]] = {}


def _registered() -> Iterator[tuple[Path, str]]:
    """Files outside the package that define entries of registries, each with its code. They are
    read once, before anything is computed: later changes do not run."""
    for registry in Registry.every:
        for name, entry in registry.items():
            key = registry.what, name, id(entry)
            if key not in _READ:
                paths = {registry.added_by.get(name, ROOT), *_files_of(entry)}
                own = [path for path in paths if path.is_file() and not path.is_relative_to(ROOT)]
                _READ[key] = {path: _code(path.read_bytes()) for path in own}, entry
            yield from _READ[key][0].items()


def _files_of(entry: Any) -> set[Path]:
    """Files of an entry's functions: itself, its attributes and its methods."""
    entry = _function(entry)
    parts = [entry, *getattr(entry, "__dict__", {}).values()]
    for each in type(entry).__mro__:
        parts += vars(each).values()
    codes = [getattr(_function(part), "__code__", None) for part in parts]
    paths = {Path(code.co_filename) for code in codes if code}
    return {path for path in paths if "site-packages" in path.parts or STDLIB not in path.parents}


def _function(part: Any) -> Any:
    """The function within a `functools.partial` or decorators."""
    return inspect.unwrap(getattr(part, "func", part))


@functools.cache
def _package() -> str:
    return "\0".join(f"{name}\0{_code(source)}" for name, source in _SOURCES)


def _code(source: bytes) -> str:
    """The syntax tree as text, without docstrings and without what is empty: later versions of
    Python have more of it, and 3.12 ends some f-strings with an empty constant."""
    tree = ast.parse(source)
    documented = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        if isinstance(node, ast.JoinedStr):
            node.values = [v for v in node.values if getattr(v, "value", None) != ""]
        for name in [name for name, value in ast.iter_fields(node) if value == []]:
            delattr(node, name)
    return ast.dump(tree)
