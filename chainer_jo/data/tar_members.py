"""Files and folders of an untrusted tar; other kinds of members are refused."""

from __future__ import annotations

import contextlib
import errno
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from chainer_jo import files
from chainer_jo.errors import UserError

try:
    from lzma import LZMAError
except ImportError:  # of a Python without liblzma, where tarfile takes no .tar.xz
    LZMAError = zlib.error  # type: ignore[assignment, misc]

#: Errors of tarfile and of the decompressors for a file that is no tar, or a damaged one.
DAMAGED = (tarfile.TarError, LZMAError, zlib.error, EOFError, ValueError, RecursionError)
# Disk errors that a tar causes, such as a file in the place of a folder or a name that is too long.
_BAD_NAME = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ)


@contextlib.contextmanager
def open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Opens a tar, compressed or not. Raises OSError, or one of `DAMAGED` for another file."""
    with files.opened(path) as file, tarfile.open(fileobj=file) as archive:
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

    Raises UserError, in the body too, for a damaged tar, and for a wanted member that is neither
    file nor folder or whose name leads out of the tar.
    """
    try:
        with open_tar(path) as archive:
            yield _members(archive, wanted)
    except UserError as error:
        raise UserError(f"image archive {str(path)!r}: {error}") from None
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, *_BAD_NAME):
            raise  # of the disk, not of the decoders
        raise UserError(
            f"image archive {str(path)!r} is damaged ({error}), expected a whole tar file"
        ) from error


def _members(archive: tarfile.TarFile, wanted: Callable[[PurePosixPath], bool]) -> Iterator[Member]:
    while (member := archive.next()) is not None:
        # A million would take a gigabyte. Type hints of Python do not have the attribute.
        archive.members.clear()  # type: ignore[attr-defined]
        name, shown = PurePosixPath(member.name), f"{member.name[:200]!r}"
        if not wanted(name):
            continue
        if not (member.isfile() or member.isdir()):
            kind = "link" if member.issym() or member.islnk() else "special file"
            raise UserError(
                f"{shown} is a {kind}, expected files and folders only "
                "(tar --dereference --hard-dereference packs what links lead to)"
            )
        if name.is_absolute() or ".." in name.parts:
            raise UserError(f"{shown} leads out of it, expected a path below it")
        yield name, archive.extractfile(member)
    # tarfile takes a damaged header for the end; the real end is two zero blocks.
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("its end is missing")
    while archive.fileobj.read(1 << 20):  # the checksum comes last
        pass
