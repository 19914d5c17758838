"""Atomic writes of files and folders, JSON, .npz archives, digests."""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import tempfile
import zipfile
from collections.abc import Callable, Container, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import numpy as np

from chainer_jo.errors import UserError, one_line

#: How the names of temporary folders begin, which only a kill leaves; see `new_folder`.
TEMPORARY = ".chainer_jo-"


def write(path: Path, save: Callable[[IO[bytes]], object]) -> None:
    """Writes a file atomically: ``save`` fills a temporary binary file beside ``path``, which is
    synchronised and renamed. Permissions follow the umask, as for any new file.

    Raises UserError if the file cannot be written; ``path`` is then unchanged.
    """
    temporary = path.with_name(f"{path.name}{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            save(file)
            to_disk(file)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise UserError(f"cannot write {path}: {error.strerror or error}") from None
        raise


def to_disk(file: IO) -> None:
    """Flushes a file to the disk, if its file system supports that (CIFS and FUSE may not)."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise


def to_lock(path: Path) -> IO[bytes]:
    """File for ``flock``, created if missing; its content stays. Raises OSError for a link."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    return os.fdopen(descriptor, "rb", 0)


def opened(path: str | Path) -> BufferedReader:
    """File opened for reading. Raises OSError also for a device or pipe, which may have no end."""
    if not (os.path.isfile(path) or os.path.isdir(path)) and os.path.exists(path):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(path, "rb")


def content(path: str | Path) -> bytes:
    """Bytes of a file. Raises OSError as `opened` does, or if they exceed the memory."""
    try:
        with opened(path) as file:
            return file.read()
    except MemoryError:
        raise OSError(errno.ENOMEM, "larger than the memory", str(path)) from None


def expanded(path: str | Path) -> Path:
    """Absolute path, with the home folder for ``~``. Raises UserError for a user without one."""
    found = os.path.expanduser(path)
    if found.partition("/")[0] == "~":
        raise UserError(f"{path}: no home folder; set HOME, or CHAINER_DATASET_ROOT for the cache")
    return Path(os.path.abspath(found))


def check_unchanged(where: str, before: object, after: object) -> None:
    """Raises UserError unless data have the same digest before and after they were read: what was
    read would be known by a digest that may not be its own."""
    if before != after:
        raise UserError(f"{where}: changed while it was read, expected to stay; run this again")


def is_utf8(name: str) -> bool:
    """True for a file name in UTF-8; other bytes stand in a name as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Temporary folder to fill, renamed to ``folder`` at the end. The working directory and a mount
    point cannot be replaced: the content of the temporary folder is moved into them.

    Raises UserError if ``folder`` is not empty, or cannot be written; nothing is left behind.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"folder {str(folder)!r}: exists, expected a new or empty folder")
        place = Path(os.path.realpath(folder))  # resolves links and "."
        place.parent.mkdir(parents=True, exist_ok=True)
        stays = place.exists() and (place.samefile(os.curdir) or os.path.ismount(place))
        parent = place if stays else place.parent
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent) as beside:
            whole = Path(beside) / place.name
            whole.mkdir()
            yield whole
            if stays:
                for each in whole.iterdir():
                    each.rename(place / each.name)
            else:
                whole.rename(place)
    except OSError as error:
        raise UserError(f"folder {str(folder)!r}: {error.strerror or error}") from None


def write_bytes(path: Path, content: bytes) -> None:
    """Writes bytes; see `write`."""
    write(path, lambda file: file.write(content))


def write_text(path: Path, text: str) -> None:
    """Writes text as UTF-8, with question marks for lone surrogates; see `write`."""
    write_bytes(path, text.encode(errors="replace"))


def write_json(path: Path, value) -> None:
    """Writes a JSON value, indented; see `write`."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, kind: type = dict, missing: Any = ...) -> Any:
    """JSON value of type ``kind`` in a file; ``missing``, if given, without such a file.

    Raises UserError if the file is not readable, or has a value of another type.
    """
    try:
        value = json.loads(content(path))
    except (OSError, ValueError, RecursionError) as error:
        # As Path.exists: no file exists below a file in the place of a folder.
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        if absent and missing is not ...:
            return missing
        remedy = "" if missing is ... else "; restore or remove it"
        raise UserError(f"{path}: not readable as JSON ({error}){remedy}") from None
    if not isinstance(value, kind):
        raise UserError(f"{path}: a {type(value).__name__} in JSON, expected a {kind.__name__}")
    return value


def json_digest(value) -> str:
    """SHA-256 of a JSON value, independent of the layout of its file; floats are exact in JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def expected(path: Path, what: str) -> Iterator[None]:
    """Turns any error while a file is read into a UserError: damaged, expected ``what``."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # a damaged archive can raise anything
        raise UserError(f"{path}: damaged ({one_line(error)}); expected {what}") from None


def arrays(path: str | Path, wanted: Container[str] | None = None) -> dict[str, np.ndarray]:
    """Arrays of an .npz by name, the ``wanted`` ones or all: numbers of at most 8 bytes, or text.

    Raises any exception for a damaged or another file (see `expected`), and for arrays of other
    kinds, such as objects, whose pickles may run code.
    """
    found = {}
    with opened(path) as file, zipfile.ZipFile(file) as archive:
        members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
        members = {name: members[name] for name in members if wanted is None or name in wanted}
        for name, member in members.items():
            with archive.open(member) as content:
                array = np.lib.format.read_array(content, allow_pickle=False)
            if array.dtype.kind not in ("US" if array.dtype.itemsize > 8 else "USbiuf"):
                raise ValueError(
                    f"array {name!r} is {array.dtype}, expected numbers of at most 8 bytes, or text"
                )
            found[name] = array
    return found


def check_arrays(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError unless arrays have the names and shapes of the ``expected`` ones, and
    finite numbers: Chainer's deserializer would broadcast others, and load any."""
    for name in [*expected, *found]:
        shape, wanted = (str(x[name].shape) if name in x else "none" for x in (found, expected))
        if shape != wanted:
            raise ValueError(f"array {name!r} is {shape}, expected {wanted}")
        if found[name].dtype.kind not in "fiub" or not np.isfinite(found[name]).all():
            raise ValueError(f"array {name!r} is text, or not finite")


def save_arrays(path: Path, of: str, **named: np.ndarray) -> None:
    """Writes an .npz that names its owner ``of``, and has a checksum; see `write`."""
    sha256 = _arrays_digest(named)
    members: dict[str, Any] = {"of": np.asarray(of), "sha256": np.asarray(sha256), **named}
    write(path, lambda file: np.savez(file, **members))


def load_arrays(path: Path, of: str) -> dict[str, np.ndarray]:
    """Arrays that `save_arrays` wrote with the same ``of``.

    Raises any exception for a damaged file, or one of another owner; see `expected`.
    """
    found = arrays(path)
    owner, sha256 = (str(found.pop(name, "nobody")) for name in ("of", "sha256"))
    if owner != of:
        raise ValueError(f"of {owner!r}, not of {of!r}")
    if sha256 != _arrays_digest(found):
        raise ValueError("changed since it was written")
    return found


def _arrays_digest(named: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(named.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def load_mapped(path: str | Path) -> np.ndarray:
    """Array of an .npy, mapped into memory if the file system can do so.

    Raises any exception for a damaged or another file, or a pipe.
    """
    opened(path).close()
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:  # ENODEV, say
        return np.load(path, allow_pickle=False)


def digest(path: str | Path, digits: int = 12) -> str:
    """First hexadecimal digits of a file's SHA-256. Raises UserError if it cannot be read."""
    try:
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:digits]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
