"""A tar of image files, unpacked once, so that each of them can be read on its own."""

from __future__ import annotations

import hashlib
import lzma
import os
import tarfile
import zlib
from pathlib import Path

from chainer_jo.datasets.array_cache import made_once
from chainer_jo.errors import UserError

DAMAGED = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError)
_CONTENT, _COUNT = "content", "count"
_CHUNK = 1 << 20


def unpack(path: Path) -> Path:
    """Unpacks a tar below Chainer's data set folder; returns the folder, or the only folder in it.

    Raises
    ------
    UserError
        if the tar is damaged, has links or paths that lead out of it, or there is no room.
    """
    status = path.stat()
    digest = hashlib.sha256(f"{path}/{status.st_size}/{status.st_mtime_ns}".encode())
    name = f"unpacked-{digest.hexdigest()[:16]}"
    content = made_once(name, lambda folder: _extract(path, folder), _whole)
    visible = [entry for entry in content.iterdir() if not entry.name.startswith(".")]
    return visible[0] if len(visible) == 1 and visible[0].is_dir() else content


def _extract(path: Path, folder: Path) -> None:
    content = folder / _CONTENT
    content.mkdir()
    try:
        with tarfile.open(path, errorlevel=2) as archive:
            archive.getmembers()
            check_end(archive)
            _extract_all(archive, content)
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the decoders
        raise UserError(
            f"image archive {str(path)!r} is damaged, or leads out of itself ({error}), expected "
            "a whole tar file of folders and files"
        ) from error
    (folder / _COUNT).write_text(str(_count(content)))
    os.sync()


def _extract_all(archive: tarfile.TarFile, content: Path) -> None:
    if hasattr(tarfile, "data_filter"):
        archive.extractall(content, filter="data")
        return
    top = Path(os.path.realpath(content))  # up to Python 3.11.3, which Debian 12 has
    for member in archive:
        places = [top / member.name]
        if member.issym():
            places.append(places[0].parent / member.linkname)
        elif member.islnk():
            places.append(top / member.linkname)
        elif not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} is a special file")
        if not all(Path(os.path.realpath(place)).is_relative_to(top) for place in places):
            raise tarfile.TarError(f"{member.name!r} would be outside the destination")
        archive.extract(member, top, set_attrs=False)


def check_end(archive: tarfile.TarFile) -> None:
    """Raises ReadError unless the archive, which has been read to its last member, ends there. A
    damaged compressed archive raises what its decompressor raises."""
    # tarfile takes a cut or garbled header for the end; the real end is two zero blocks.
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("its end is missing")
    while archive.fileobj.read(_CHUNK):  # checksums are the last that comes
        pass


def _whole(folder: Path) -> Path:
    """The content; OSError if a file is missing."""
    if int((folder / _COUNT).read_text()) != _count(folder / _CONTENT):
        raise ValueError("files are gone")
    return folder / _CONTENT


def _count(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))
