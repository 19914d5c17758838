"""Features computed from image files: pixels, EfficientNet-Lite0's or ResNet-50's; kept in the
cache, block by block."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from PIL import Image
from threadpoolctl import threadpool_limits

from chainer_jo import files
from chainer_jo.data import decoding
from chainer_jo.data.array_cache import cached_blocks
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.progress import Progress
from chainer_jo.devices import device_of, usable_cores
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.errors import UserError
from chainer_jo.method.resnet50 import load_resnet50
from chainer_jo.method.resnet50_features import pool5
from chainer_jo.relabel.read import lite0
from chainer_jo.relabel.read.labelled_images import LabelledImages

#: Images per forward pass, always as many, so that features are the same bits however often a
#: computation was stopped; and images per file of the cache, all that a kill loses.
BATCH, BLOCK = 32, 256
#: Part of the names of cached files: number of the way in which features are computed.
VERSION = 2
#: Pixels along a side of the images that networks see, and at most of those whose pixels are the
#: features.
LITE0_SIDE, RESNET50_SIDE, PIXELS_SIDE = 96, 224, 16
#: Largest usual size of images whose pixels are tried without being asked for, in pixels.
SMALL = 64
#: Images opened for the usual size.
SAMPLED_IMAGES = 100
#: Maps RGB images uint8 (b, side, side, 3) to features float32 (b, d).
Compute = Callable[[np.ndarray], np.ndarray]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Extractor:
    """A way to compute features.

    Attributes
    ----------
    name, words : short, and in messages.
    side : pixels along a side of the images, which are resized to a square.
    length : of the features of an image.
    weights : digest of the network's; "" without any.
    load : gives the computation on a device, "cpu" or "cuda:N", or raises UserError.
    threads : True if passes may be computed side by side on a CPU.
    """

    name: str
    words: str
    side: int
    length: int
    weights: str
    load: Callable[[str], Compute]
    threads: bool = True


def pixels(side: int) -> Extractor:
    """Pixels in [0, 1], of images resized to ``side``."""

    def load(device: str) -> Compute:
        return lambda images: images.reshape(len(images), -1) / np.float32(255)

    return Extractor("pixels", f"pixels ({side} x {side})", side, 3 * side**2, "", load)


def builtin(side: int = LITE0_SIDE) -> Extractor:
    """Features of EfficientNet-Lite0."""

    def load(device: str) -> Compute:
        used = device_of(device)
        used.use()
        return lite0.Lite0(lite0.load_weights(), side, used.xp)

    words = f"built-in features (EfficientNet-Lite0, {side} x {side} pixels)"
    return Extractor("builtin", words, side, lite0.FEATURES, lite0.SHA256, load)


def resnet50(weights: str) -> Extractor:
    """The paper's features, of a ResNet-50 with a file of weights."""

    def load(device: str) -> Compute:
        network = load_resnet50(weights)
        files.check_unchanged(f"ResNet-50 weights {weights}", digest, files.digest(weights))
        network.to_device(device_of(device))
        network.device.use()
        use_backend(choose_backend(network.device))
        return lambda images: pool5(network, images, RESNET50_SIDE)

    sizes = RESNET50_SIDE, 2048
    digest = files.digest(weights)
    return Extractor("resnet50", "ResNet-50's features", *sizes, digest, load, threads=False)


#: Extractors by the names that ``--features`` and ``model.npz`` have for them.
EXTRACTORS: Mapping[str, Callable[[int], Extractor]] = {"builtin": builtin, "pixels": pixels}


def candidates(chosen: str, images: LabelledImages) -> list[Extractor]:
    """Extractors of ``--features``: one of `EXTRACTORS`, or "auto" for all that suit the images.
    Raises UserError if no image can be opened, or the weights are needed and missing."""
    side = usual_size(images)
    sides = {"builtin": LITE0_SIDE, "pixels": min(side, PIXELS_SIDE)}
    if chosen == "auto" and not lite0.installed():
        missing = f"no package {lite0.PACKAGE}, which built-in features need"
        if side > SMALL:
            raise UserError(
                f"data {images.source!r}: images of about {side} pixels, and {missing}; "
                f"{lite0.INSTALL}, or give --features FILE, or --features pixels"
            )
        _log.warning("%s: pixels alone are tried", missing)
        chosen = "pixels"
    if chosen != "pixels":
        lite0.load_weights()
    names = [chosen] if chosen in EXTRACTORS else ["builtin"] + ["pixels"] * (side <= SMALL)
    return [EXTRACTORS[name](sides[name]) for name in names]


def usual_size(images: LabelledImages) -> int:
    """Median over SAMPLED_IMAGES images of the longer side, in pixels. Raises UserError if none
    can be opened."""
    sides = []
    chosen = np.linspace(0, len(images) - 1, min(SAMPLED_IMAGES, len(images))).astype(int)
    for file in images.files(chosen):
        # Decoding names the files that cannot be opened, and why.
        with suppress(Exception), files.opened(file) as opened:
            sides.append(max(Image.open(opened, formats=decoding.FORMATS).size))
    if not sides:
        raise UserError(f"data {images.source!r}: none of {len(chosen)} images can be opened")
    return int(np.median(sides))


def of_set(images: LabelledImages, extractor: Extractor, device: str) -> np.ndarray:
    """Features of a set, which errors name; see `compute`."""
    return compute(images.files(), extractor, device, f"data {images.source!r}", images.show)


def compute(
    paths: Sequence[str],
    extractor: Extractor,
    device: str = "cpu",
    where: str = "images",
    show: Callable[[int], str] = str,
) -> np.ndarray:
    """Features (n, d) float32 of image files, in order, cached under a digest of the files'
    contents: an interrupted computation resumes, and ends with the same bits.

    Raises UserError if images cannot be decoded, naming the set, ``where``, and image i by
    ``show``; if they change meanwhile; if the cache cannot be written; or as `Extractor.load` does.
    """
    problems = Problems()
    bar = Progress(extractor.words.partition(" (")[0].capitalize(), "images", len(paths))
    threads = 1 if extractor.threads else usable_cores()
    with ThreadPoolExecutor(usable_cores()) as pool, threadpool_limits(threads):
        run = pool.map if extractor.threads and device == "cpu" else map

        def load() -> Callable[[int, str], np.ndarray | None]:
            network = extractor.load(device)

            def block(number: int, name: str) -> np.ndarray | None:
                start = number * BLOCK
                some = paths[start : start + BLOCK]
                decoded = pool.map(partial(_decoded, side=extractor.side), some)
                images, contents = zip(*decoded, strict=True)
                for i, image in enumerate(images, start):
                    if isinstance(image, str):
                        kind = f"image cannot be decoded, {decoding.EXPECTED}"
                        problems.add(kind, f"{show(i)}: {image}")
                if len(problems):  # all others are tried as well, to be named
                    return None
                parts = []
                for part in run(network, _batches(images)):
                    parts.append(part)
                    bar.update(start + BATCH * len(parts))
                files.check_unchanged(where, name, _cached(extractor, device, contents))
                return np.concatenate(parts)[: len(some)]

            return block

        starts = range(0, len(paths), BLOCK)
        contents = (pool.map(_content, paths[start : start + BLOCK]) for start in starts)
        blocks = cached_blocks((_cached(extractor, device, each) for each in contents), load, bar)
    problems.raise_if_any(where)
    return np.concatenate(blocks)


def _batches(images: Sequence[Any]) -> list[np.ndarray]:
    """Batches of `BATCH` images; the last one is filled up with images from the start."""
    number = -(-len(images) // BATCH)
    return np.split(np.resize(images, (number * BATCH, *images[0].shape)), number)


def _content(path: str) -> bytes:
    """Digest of a file; of one that cannot be read, zeros."""
    try:
        return hashlib.sha256(files.content(path)).digest()
    except OSError:
        return bytes(32)


def _decoded(path: str, side: int) -> tuple[np.ndarray | str, bytes]:
    """Image of a file, or why it has none, and the digest of the bytes that were decoded."""
    try:
        content = files.content(path)
    except OSError as error:
        return decoding.reason(error), b""
    digest = hashlib.sha256(content).digest()
    return decoding.attempt(content, side, 2 * side), digest  # a large JPEG at part of its size


def _cached(extractor: Extractor, device: str, contents: Iterable[bytes]) -> str:
    """Name in the cache for the features of a block of files."""
    computed = device.partition(":")[0], extractor.name, extractor.side, extractor.weights
    digest = hashlib.sha256(f"{VERSION} {decoding.VERSION} {computed}".encode())
    digest.update(b"".join(contents))
    return f"features/{extractor.name}-{digest.hexdigest()[:16]}.npz"
