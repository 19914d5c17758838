"""Packs the state of a session on a borrowed GPU into a few files of limited size, and unpacks it.

    python benchmarks/gpu_state.py pack FOLDER
    python benchmarks/gpu_state.py unpack FOLDER

Packed folders: results/ and figures/ (without reference/) and gpu-session/, below the current
folder. Files over the limit are left out by kind: first compiled kernels, then weights of finished
runs, then checkpoints of unfinished runs, which then start again. Requires only Python.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import sys
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDERS = ("results", "figures", "gpu-session")
NAME = "session.tar"
#: Bytes of each of the files, but for the last.
PART = 15 << 20
#: All of them together, so that they fit into 64 MiB with what else a call takes along: a snapshot
#: of the paper's first step is 31 MiB, without which the run begins anew.
LIMIT = 36 << 20
#: What is kept first: tables, logs and results, labels (a second step begins with them), snapshots.
KINDS = ("", "labels.npz", "snapshot", "model.npz")
#: Name's end of compiled kernels, which are kept last.
KERNEL = ".cubin"


def kind(path: Path) -> int:
    """How soon a file is left out."""
    if path.suffix == KERNEL:
        return len(KINDS)
    return max(i for i, start in enumerate(KINDS) if path.name.startswith(start))


def candidates(root: Path, back: Path) -> list[Path]:
    """The files to pack, what matters most first, and of a kind the newest."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            parts = path.relative_to(root).parts
            committed = parts[1] in ("reference", "README.md")
            if not path.is_file() or committed or path.is_relative_to(back):
                continue
            if path.name != "lock" and path.suffix != ".tmp":
                with suppress(FileNotFoundError):  # a worker may be at its end
                    found.append((kind(path), -path.stat().st_mtime, path))
    return [path for *_, path in sorted(found)]


def pack(root: Path, folder: Path, limit: int) -> list[Path]:
    """Writes NAME.0, NAME.1 and so on into a folder, `limit` bytes at most in all; returns what was
    left out. Two that pack into one folder do so one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        content, left_out = _archive(root, folder, limit)
        _replace(folder, content)
    return left_out


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _archive(root: Path, folder: Path, limit: int) -> tuple[bytes, list[Path]]:
    left_out, archive = [], io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in candidates(root, folder):
            try:
                content, written = path.read_bytes(), path.stat().st_mtime
            except FileNotFoundError:
                continue
            # Nearly all is arrays of floats, which others make no smaller in ten times the time.
            packed = zlib.compress(content, 1)
            # A header and padding for each, and the end of the archive.
            if archive.tell() + len(packed) + 4096 + tarfile.RECORDSIZE > limit:
                left_out.append(path)
                continue
            member = tarfile.TarInfo(str(path.relative_to(root)))
            member.size, member.mtime = len(packed), int(written)
            tar.addfile(member, io.BytesIO(packed))
    return archive.getvalue(), left_out


def _replace(folder: Path, content: bytes) -> None:
    """Writes the parts, all of them before the first takes the place of what was packed before:
    whoever is stopped here leaves that."""
    written = {}
    for number, start in enumerate(range(0, len(content), PART)):
        temporary = folder / f"{number}.tmp"
        temporary.write_bytes(content[start : start + PART])
        written[folder / f"{NAME}.{number}"] = temporary
    for part, temporary in written.items():
        temporary.replace(part)
    for old in set(folder.glob(f"{NAME}.*")) - set(written):
        old.unlink()


def unpack(root: Path, folder: Path) -> int:
    """Puts everything where it was, each file whole or not at all; returns how many files."""
    parts = sorted(folder.glob(f"{NAME}.*"), key=lambda path: int(path.suffix[1:]))
    if not parts:
        sys.exit(f"{folder}: no {NAME}.0, expected what an earlier session brought back")
    content = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    count = 0
    with tarfile.open(fileobj=content) as tar:
        for member, packed in _members(tar):
            target = root / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f"{target.name}.tmp")
            temporary.write_bytes(zlib.decompress(packed))
            temporary.replace(target)
            count += 1
    return count


def _members(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for member in tar:
        parts = Path(member.name).parts
        if not member.isfile() or parts[0] not in FOLDERS or ".." in parts:
            sys.exit(f"{NAME}: {member.name} is none of a session's files")
        yield member, tar.extractfile(member).read()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("action", choices=("pack", "unpack"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    root, folder = Path.cwd(), options.folder.resolve()
    if options.action == "unpack":
        print(f"{unpack(root, folder)} files of an earlier session are back in their places")
        return
    left_out = pack(root, folder, LIMIT)
    for path in left_out:
        print(f"left out for want of room: {path.relative_to(root)}")


if __name__ == "__main__":
    main()
