"""A digest of the code that results follow from, so that those of other code are noticed."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import chainer_jo
from chainer_jo.datasets import noise
from chainer_jo.training import labels

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
    "experiments/scores.py",
    "experiments/task.py",
)
ROOT = Path(chainer_jo.__file__).parent


def _read() -> list[tuple[str, bytes]]:
    """Names and contents of the package's sources."""
    paths = [
        path
        for part in (ROOT / name for name in PARTS)
        for path in (sorted(part.rglob("*.py")) if part.is_dir() else [part])
    ]
    return [(path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in paths]


#: Read as the code is loaded: when a run ends, the source tree may be another one.
_SOURCES = _read()


def digest() -> str:
    """12 hexadecimal digits of the package's code, without comments, docstrings and layout, and of
    the files that rules and noises were added from."""
    codes = sorted(_code(path.read_bytes()) for path in added() if path.exists())
    return hashlib.sha256("\0".join([_package(), *codes]).encode()).hexdigest()[:12]


def added() -> set[Path]:
    """The files that rules and noises were added from."""
    return {Path(function.__code__.co_filename) for function in _added()}


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
            if name == "body" and _is_docstring(value):
                value = value[1:]
            if value is not None and value != []:
                add(f" {name}=")
                _write(value, add)
        add(")")
    else:
        add(repr(node))


def _is_docstring(body) -> bool:
    """Whether a body begins with a string that nothing is done with."""
    return (
        isinstance(body, list)
        and bool(body)
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )


def _added() -> Iterator[Callable]:
    """Functions in the registries whose code is not the package's."""
    models = (f for model in noise.MODELS.values() for f in (model.draw, model.matrix))
    for function in (*labels.RULES.values(), *models):
        code = getattr(function, "__code__", None)
        if code and ROOT not in Path(code.co_filename).parents:
            yield function
