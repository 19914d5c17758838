"""Files and folders of an untrusted tar; other kinds of members are refused."""

from __future__ import annotations

import contextlib
import errno
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Self

from chainer_jo import files
from chainer_jo.errors import UserError

#: Errors of tarfile and of the decompressors for a file that is no tar, or a damaged one.
DAMAGED = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError, RecursionError)
# Disk errors that a tar causes, such as a file in the place of a folder or a name that is too long.
_BAD_NAME = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ)
_MIB = 1 << 20
_SPARE_FOLDERS = 1000  # that a tar may have beside one for each member


class _Header(tarfile.TarInfo):
    """Member header; refuses sizes that fill the memory or lead backwards in the tar."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        long = not header.isreg() and header.size > _MIB  # tarfile reads all but files at once
        if header.size < 0 or long or header.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError(f"{header.size} bytes of type {header.type!r}")
        return header

    def _proc_gnusparse_10(self, *_) -> None:  # the map of holes may be as long as the tar
        raise tarfile.ReadError("a sparse file")


@contextlib.contextmanager
def open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Opens a tar, compressed or not. Raises OSError, or one of `DAMAGED` for another file."""
    with files.opened(path) as file, tarfile.open(fileobj=file, tarinfo=_Header) as archive:
        yield archive


def is_tar(path: Path) -> bool:
    """True if a file begins like a tar. Raises OSError if it cannot be read."""
    with contextlib.suppress(*DAMAGED), open_tar(path):
        return True
    return False


#: Name of a member, and content of a file or None for a folder.
Member = tuple[PurePosixPath, IO[bytes] | None]


@contextlib.contextmanager
def read(path: Path, wanted: Callable[[PurePosixPath], bool]) -> Iterator[Iterator[Member]]:
    """Wanted members of a tar, in its order; each has to be read before the next.

    Raises UserError, in the body too, for a damaged tar, a decompression bomb, and a wanted member
    that is neither file nor folder or whose name leads out of the tar.
    """
    try:
        with open_tar(path) as archive:
            yield _members(archive, files.unpacked_limit(path.stat().st_size), wanted)
    except UserError as error:
        raise UserError(f"image archive {str(path)!r}: {error}") from None
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, *_BAD_NAME):
            raise  # of the disk, not of the decoders
        raise UserError(
            f"image archive {str(path)!r} is damaged ({error}), expected a whole tar file"
        ) from error


def _members(
    archive: tarfile.TarFile, limit: int, wanted: Callable[[PurePosixPath], bool]
) -> Iterator[Member]:
    folders: set[PurePosixPath] = set()
    allowed = _SPARE_FOLDERS
    while (member := archive.next()) is not None:
        # A million would take a gigabyte. Type hints of Python do not have the attribute.
        archive.members.clear()  # type: ignore[attr-defined]
        name, shown = PurePosixPath(member.name), f"{member.name[:200]!r}"
        if not 0 <= member.size <= limit - member.offset_data:
            raise UserError(f"{shown} unpacks to {member.size} bytes, expected {limit} at most")
        if not wanted(name):
            continue
        if member.issparse() or not (member.isfile() or member.isdir()):
            kind = "link" if member.issym() or member.islnk() else "special or sparse file"
            raise UserError(
                f"{shown} is a {kind}, expected files and folders only "
                "(tar --dereference --hard-dereference packs what links lead to)"
            )
        if name.is_absolute() or ".." in name.parts or len(name.parts) > 100:
            raise UserError(f"{shown} leads out of it, or too deep; expected a path below it")
        if name.parent not in folders:
            folders.update(name.parents)
        if len(folders) > (allowed := allowed + 1):
            raise UserError(f"{shown} is in one of {len(folders):,} folders, expected fewer")
        yield name, archive.extractfile(member)
    # tarfile takes a damaged header for the end; the real end is two zero blocks.
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("its end is missing")
    while archive.fileobj.read(_MIB):  # the checksum comes last
        if archive.fileobj.tell() > limit:
            raise tarfile.ReadError("more than zeros after its end")
