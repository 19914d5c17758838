"""Images from a folder or tar laid out as train/<class>/* and test/<class>/*, decoded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePath, PurePosixPath

import numpy as np

from chainer_jo import child_processes, files
from chainer_jo.data import decoding, tar_members
from chainer_jo.data.array_cache import decoded_once, state_of
from chainer_jo.data.image_names import is_hidden, is_image
from chainer_jo.data.labelled_data import LabelledData, by_value, clean_data
from chainer_jo.data.progress import Progress
from chainer_jo.devices import usable_cores
from chainer_jo.errors import UserError

#: Folders of the two parts of a data set.
PARTS = ("train", "test")
#: Minimum number of images per decoding process: decoding them takes as long as its start. Threads
#: would wait for each other: small images take Pillow's Python code longer than its decoders.
PER_PROCESS = 5000
#: Number of images that a process decodes at a time.
CHUNK = 500


def load(path: Path, name: str) -> LabelledData:
    """Images of a folder, or of a tar of that folder, compressed or not.

    Classes and, within a class, images are sorted by name, numbers in names by value. Images are
    grey, (h, w, 1), if all of them are, otherwise RGB, (h, w, 3); see `decoding.read`. Links in a
    folder are followed.

    Raises UserError, naming the file or class: no train or test classes, a class in only one of
    them, a file that is no image, an image in another place, images of different sizes, a damaged
    tar, two folders of images in a tar, a link in a tar, or a broken link.
    """
    listed = path.is_dir()

    def key() -> str:
        listing = _digest_of_listing(path) if listed else files.digest(path, 64)
        return hashlib.sha256(f"{decoding.VERSION} {listing}".encode()).hexdigest()

    def decode() -> LabelledData:
        data = _assemble(name, str(path), (_folder_contents if listed else _tar_contents)(path))
        files.check_unchanged(f"images in {str(path)!r}", before, key())
        return data

    return decoded_once(name, before := key(), decode)


def _list(root: Path) -> list[Path]:
    for entry in (e for part in PARTS for level in ("*", "*/*") for e in (root / part).glob(level)):
        if not entry.exists() and not is_hidden(entry.name):
            raise UserError(f"image {str(entry)!r}: a link that leads nowhere, expected a file")
    for entry in (e for part in PARTS for e in (root / part).rglob("*")):
        if len(entry.relative_to(root).parts) != 3:
            _check_place(entry.relative_to(root), root)
    return sorted(f for part in PARTS for f in (root / part).glob("*/*") if f.is_file())


def _check_place(name: PurePath, where: Path) -> None:
    """Raises UserError for an image of `PARTS` that is not in a folder of its class."""
    hidden = any(map(is_hidden, name.parts))
    if not hidden and is_image(name.name) and (above := [x for x in name.parts if x in PARTS]):
        raise UserError(f"image {str(where / name)!r}: expected in {above[0]}/<class>/")


def _digest_of_listing(root: Path) -> str:
    """Digest of names and states: changes when a file comes, goes, or is written or replaced."""
    digest = hashlib.sha256()
    for file in _list(root):
        entry = (file.relative_to(root).as_posix(), *state_of(file.stat()))
        digest.update(repr(entry).encode())
    return digest.hexdigest()


def _folder_contents(root: Path) -> Iterator[tuple[str, bytes]]:
    for file in _list(root):
        try:
            content = files.content(file)
        except OSError as error:
            raise UserError(
                f"image {str(file)!r}: {error.strerror or error}, expected a readable file"
            ) from error
        yield file.relative_to(root).as_posix(), content


def _tar_contents(path: Path) -> Iterator[tuple[str, bytes]]:
    with tar_members.read(path, lambda name: not set(PARTS).isdisjoint(name.parts)) as members:
        for name, packed in members:
            if packed is not None:
                yield str(name), packed.read()


def _assemble(name: str, place: str, contents: Iterable[tuple[str, bytes]]) -> LabelledData:
    """Sorts, checks and decodes the files."""
    encoded: dict[tuple[str, str, str], bytes] = {}
    top = None  # the folder that was packed, if the tar begins with it
    for file_name, content in contents:
        parts = PurePosixPath(file_name).parts
        *above, part, class_name, image_name = ("", "", *parts)
        if any(map(is_hidden, parts)):
            continue
        if part not in PARTS:
            _check_place(PurePosixPath(file_name), Path(place))
            continue
        folder = "/".join(filter(None, above))
        if top not in (None, folder):
            raise UserError(
                f"images in {place!r}: some are below {top or '.'!r}, others below "
                f"{folder or '.'!r}, expected train/ and test/ in one folder"
            )
        top = folder
        encoded[part, class_name, image_name] = content
    class_names = _class_names(encoded.keys(), place)
    order = sorted(encoded, key=lambda key: (PARTS.index(key[0]), *map(by_value, key[1:])))
    images = _decode_all(name, place, {"/".join(key): encoded[key] for key in order})
    labels = np.array([class_names.index(class_name) for _, class_name, _ in order], np.int32)
    n = sum(part == "train" for part, _, _ in order)
    return clean_data(name, images[:n], labels[:n], images[n:], labels[n:], class_names)


def _class_names(names: Iterable[tuple[str, str, str]], place: str) -> tuple[str, ...]:
    classes: dict[str, set[str]] = {part: set() for part in PARTS}
    for part, class_name, _ in names:
        classes[part].add(class_name)
        if class_name.encode(errors="ignore").decode() != class_name:
            raise UserError(f"images in {place!r}: class {class_name!r}, expected a name in UTF-8")
    for part in PARTS:
        if not classes[part]:
            raise UserError(
                f"images in {place!r}: none under {part}/, expected {part}/<class>/*.png or *.jpg"
            )
    for one, other in (PARTS, PARTS[::-1]):
        for class_name in sorted(classes[one] - classes[other]):
            raise UserError(
                f"images in {place!r}: class {class_name!r} is in {one}/ but not in {other}/, "
                "expected the same classes in both"
            )
    return tuple(sorted(classes["train"], key=by_value))


def _decode_all(name: str, place: str, encoded: dict[str, bytes]) -> np.ndarray:
    """Pixels of all files in order, uint8 (n, h, w, c); of many files by all cores."""
    decoded: list[np.ndarray] = []
    processes = max(1, min(usable_cores(), len(encoded) // PER_PROCESS))
    decode = partial(_decode, place)
    bar = Progress(f"Decoding {name}", "images", len(encoded))
    results = child_processes.in_order(decode, encoded.items(), processes, CHUNK)
    try:
        for file_name, pixels in zip(encoded, results, strict=True):
            decoded.append(pixels)
            (h, w), expected = pixels.shape[:2], decoded[0].shape[:2]
            if (h, w) != expected:
                raise UserError(
                    f"image {file_name!r} in {place!r} has {h} x {w} pixels, expected "
                    f"{expected[0]} x {expected[1]} (height x width) like {next(iter(encoded))!r}"
                )
            bar.update(len(decoded))
    finally:
        results.close()
        bar.finish(len(decoded))
    channels = max(image.shape[2] for image in decoded)
    images = np.empty((len(decoded), h, w, channels), dtype=np.uint8)
    for i, image in enumerate(decoded):
        images[i] = image  # a grey one among coloured ones fills all three channels
    return images


def _decode(place: str, file: tuple[str, bytes]) -> np.ndarray:
    file_name, content = file
    try:
        image = decoding.read(content)
    except Exception as error:
        raise UserError(
            f"image {file_name!r} in {place!r}: {decoding.reason(error)}, expected a whole png or "
            "jpg of 8 or 16 bits"
        ) from error
    pixels = np.asarray(image)
    return pixels[..., np.newaxis] if image.mode == "L" else pixels
