"""A file fetched over HTTP into Chainer's download cache, continued after a break."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

import filelock
from chainer.dataset import download

from chainer_jo.datasets.progress import Progress
from chainer_jo.errors import UserError

_CHUNK = 1 << 18
_ATTEMPTS = 5  # in a row without a single new byte
_TIMEOUT = 30.0  # seconds without an answer


def fetch(url: str, md5: str, pause: float = 2.0) -> Path:
    """The file behind `url`, downloaded unless it is there already.

    It is kept where `chainer.dataset.cached_download` keeps it, so that either finds the other's.
    What has arrived stays in a ``.part`` file beside it, from which a later call continues if the
    server can.

    Parameters
    ----------
    md5 : hexadecimal digest that the file must have.
    pause : seconds to wait before trying again after a break.

    Raises
    ------
    UserError
        if the file cannot be had, cannot be written, or is not the one expected.
    """
    folder = Path(download.get_dataset_root(), "_dl_cache")
    target = folder / hashlib.md5(url.encode()).hexdigest()
    part = target.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(target.with_suffix(".lock")):
            if target.exists() and md5_of(target) == md5:
                return target
            _complete(url, part, pause)
            _install(url, part, md5, target)
    except OSError as error:
        raise UserError(
            f"download folder {str(folder)!r}: {error.strerror or error}, expected to write there "
            "(CHAINER_DATASET_ROOT names another place)"
        ) from error
    return target


def md5_of(path: Path) -> str:
    """Hexadecimal md5 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _install(url: str, part: Path, md5: str, target: Path) -> None:
    found = md5_of(part)
    if found != md5:
        part.unlink()
        raise UserError(f"download of {url}: md5 {found}, expected {md5}; thrown away, try again")
    os.replace(part, target)


def _complete(url: str, part: Path, pause: float) -> None:
    """Fetch until `part` holds everything the server has."""
    fruitless = 0
    while True:
        before = _size(part)
        try:
            if _continue(url, part):
                return
            reason = "connection closed early"
        except _Broken as broken:
            reason = str(broken)
        fruitless = 0 if _size(part) > before else fruitless + 1
        if fruitless == _ATTEMPTS:
            raise UserError(
                f"download of {url}: {reason} after {_size(part):,} bytes, expected a connection; "
                "run again to continue, or name the file with --data"
            )
        time.sleep(pause)


class _Broken(Exception):
    """The transfer stopped for a reason that may pass."""


def _continue(url: str, part: Path) -> bool:
    """Fetch what `part` lacks; False if the transfer ended before the end."""
    start = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return True  # nothing beyond what is there; the md5 will tell
        if error.code >= 500:
            raise _Broken(f"HTTP {error.code}") from error
        raise UserError(f"download of {url}: HTTP {error.code}, expected 200 or 206") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(getattr(error, "reason", error)) from error
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
            start = 0  # the server sends everything again
        length = response.headers["Content-Length"]
        total = start + int(length) if length else None
        bar = Progress(f"Downloading {url.rpartition('/')[2]}", "MB", total, scale=10**6)
        done = start
        try:
            with open(part, "ab" if start else "wb") as file:
                while chunk := _read(response):
                    file.write(chunk)
                    done += len(chunk)
                    bar.update(done)
                file.flush()
                os.fsync(file.fileno())
        finally:
            bar.finish(done)
    return total is None or done >= total


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(str(error) or type(error).__name__) from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
