"""A tar of image files, unpacked once for random access."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from chainer_jo import files
from chainer_jo.data import array_cache, tar_members
from chainer_jo.data.image_names import is_hidden

_CONTENT, _COUNT = "content", "count"


def unpack(path: Path) -> Path:
    """Unpacks a tar into the cache; returns the folder, or its only subfolder.

    Raises UserError if the tar is refused, see `tar_members.read`, or the disk is full; nothing is
    left behind.
    """
    state = array_cache.state_of(path.stat())
    digest = hashlib.sha256(f"{path}/{state}".encode())
    name = f"unpacked-{digest.hexdigest()[:16]}"
    content = array_cache.cached_folder(name, lambda folder: _extract(path, state, folder), _whole)
    visible = [entry for entry in content.iterdir() if not is_hidden(entry.name)]
    return visible[0] if len(visible) == 1 and visible[0].is_dir() else content


def _extract(path: Path, state: tuple[int, ...], folder: Path) -> None:
    content = folder / _CONTENT
    content.mkdir()
    with tar_members.read(path, wanted=lambda name: True) as members:
        for name, packed in members:
            target = content / name
            (target if packed is None else target.parent).mkdir(parents=True, exist_ok=True)
            if packed is not None:
                target.unlink(missing_ok=True)  # of a file packed twice the last one counts
                with open(target, "xb") as file:
                    shutil.copyfileobj(packed, file)
    files.check_unchanged(f"data {str(path)!r}", state, array_cache.state_of(path.stat()))
    (folder / _COUNT).write_text(str(_count(content)))
    os.sync()


def _whole(folder: Path) -> Path:
    """Folder of the content; ValueError if a file is missing."""
    if int((folder / _COUNT).read_text()) != _count(folder / _CONTENT):
        raise ValueError("files are gone")
    return folder / _CONTENT


def _count(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))
