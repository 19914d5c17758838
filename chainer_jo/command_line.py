"""Flag parsing, exit codes and one-line errors of every command."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from chainer_jo.errors import Unfinished, UserError, escaped, one_line


class Parser(argparse.ArgumentParser):
    """Parser that reports a wrong flag in one line, and rejects empty arguments (unset shell
    variables), which as paths would be the current folder."""

    def parse_known_args(
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        # Shells leave the ~ of --flag=~/path as it is.
        words = [
            re.sub(r"^(--[\w-]+=|)(~[^/]*)", lambda m: m[1] + os.path.expanduser(m[2]), word)
            for word in (sys.argv[1:] if args is None else args)
        ]
        if "" in words:
            self.error(f"an argument is empty: {shlex.join(words)}")
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (--help lists the flags)")


#: Folders of commands that compute nothing, in words.
_FOLDERS = {"results": "your results", "reference": "committed results", "figures": "your figures"}


def folders_parser(description: str, **folders: str) -> Parser:
    """A parser of ``--preset`` and of folders, by name and default, with a subfolder a preset."""
    parser = Parser(description=description, allow_abbrev=False)
    add = parser.add_argument
    add("--preset", default="digits", help="name of the subfolder; default: digits")
    for name, folder in folders.items():
        words = f"folder of {_FOLDERS[name]}; default: {folder}"
        add(f"--{name}", type=Path, default=Path(folder), help=words)
    return parser


def start(
    read: Callable[[], argparse.Namespace], work: Callable[[argparse.Namespace], None]
) -> None:
    """Runs a command that computes; ends the process as `exit_codes` does.

    Parameters
    ----------
    read : gives the flags.
    work : does the command's work.
    """
    # Like Ctrl-C: otherwise the processes of the runs would live on until their epoch's end.
    with contextlib.suppress(ValueError):  # in a thread of somebody's program
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    flags: argparse.Namespace | None = None

    def hint() -> str:
        # No flag of `chainer-jo relabel` forgets runs, and relabelling by features keeps none.
        if not getattr(flags, "keeps", True):
            return "the same command starts again from the beginning"
        return resume_hint(getattr(flags, "fresh", False))

    with exit_codes(hint):
        flags = read()
        work(flags)


def resume_hint(fresh: bool = False) -> str:
    """Instruction to resume a stopped command; --fresh would start again."""
    command = "the same command without --fresh" if fresh else "the same command"
    return f"{command} continues where this one stopped"


@contextlib.contextmanager
def exit_codes(hint: Callable[[], str] = str) -> Iterator[None]:
    """Ends a process with 2 and one line for bad input, with 130 if it is interrupted, and with 1
    if nobody reads its output.

    Parameters
    ----------
    hint : instruction to resume the command; "" if the command saves no progress.
    """
    try:
        with flushed_output():
            yield
    except UserError as error:
        _end(2, f"error: {escaped(error)}", hint() if isinstance(error, Unfinished) else "")
    except BrokenPipeError:
        print_no_more()
        _end(1, "output closed by its reader" if hint() else "", hint())
    except OSError as error:
        if error.errno is None:  # of no file and no call of the system
            raise
        if error.filename is not None:
            _end(
                2, f"error: file {str(error.filename)!r}: {error.strerror}, expected a usable file"
            )
        print_no_more()  # it may be standard output that is full
        _end(2, f"error: {error.strerror}, expected free disk space, memory and processes")
    except MemoryError as error:
        _end(2, f"error: {one_line(error)}, expected more memory, or less data", hint())
    except KeyboardInterrupt:
        _end(130, "\ninterrupted" if hint() else "", hint())


def _end(code: int, line: str, hint: str = "") -> NoReturn:
    if line:
        print_safely("; ".join(filter(None, (line, hint))), file=sys.stderr, flush=True)
    sys.exit(code)


@contextlib.contextmanager
def flushed_output() -> Iterator[None]:
    """Flushes standard output at the end, or raises BrokenPipeError; characters that the locale's
    encoding lacks become question marks. A terminal that goes away, and a standard error that takes
    no more, end no work."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__") and (name == "stderr" or stream.isatty()):
            raw = io.BufferedWriter(_DropOnError(stream.fileno(), "w", closefd=False))
            wrapper = io.TextIOWrapper(raw, stream.encoding, "backslashreplace", None, True)
            setattr(sys, name, wrapper)
    notes = logging.StreamHandler()
    notes.setFormatter(_Notes())
    logging.basicConfig(level=logging.WARNING, handlers=[notes])
    if hasattr(sys.stdout, "reconfigure"):  # a notebook's has no encoding
        sys.stdout.reconfigure(errors="replace")
    try:
        yield
    finally:
        sys.stdout.flush()


def print_safely(*words: object, **options: Any) -> None:
    """Prints text with control characters `escaped`; tabs and line ends stay."""
    print(*(escaped(word, "\t\n") for word in words), **options)


class _Notes(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "note: " + escaped(super().format(record))


class _DropOnError(io.FileIO):
    """File that drops writes that fail: its disk is full, or nobody reads it."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            return super().write(data)
        return len(data)


def print_no_more() -> None:
    """Discards the rest of standard output: its reader has gone, or its disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
