"""Features computed from image files: pixels, EfficientNet-Lite0's or ResNet-50's; kept in the
cache, block by block."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import chainer
import numpy as np
from PIL import Image
from threadpoolctl import threadpool_limits

from chainer_jo import files
from chainer_jo.cores import usable_cores
from chainer_jo.data import decoding
from chainer_jo.data.array_cache import cache
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.progress import Progress
from chainer_jo.engine.backend import use_backend
from chainer_jo.engine.choice import choose_backend
from chainer_jo.errors import UserError
from chainer_jo.method.resnet50_weights import load_resnet50, variant_of
from chainer_jo.relabel.read import lite0_weights
from chainer_jo.relabel.read.labelled_images import LabelledImages
from chainer_jo.relabel.read.lite0 import Lite0
from chainer_jo.relabel.read.own_data import usual_size
from chainer_jo.runs.resnet50_features import prepare
from chainer_jo.runs.run import device_of

_log = logging.getLogger(__name__)

#: Images per forward pass. Each pass has as many, so that features are the same bits however a
#: computation is divided; and images per file of the cache, all that a kill loses.
BATCH, BLOCK = 32, 256
#: Pixels along a side of the images that the built-in network sees, and at most of those whose
#: pixels are the features; docs/label-errors.md has the measurements.
BUILTIN_SIDE, PIXELS_SIDE = 96, 16
#: Number of the way in which features are computed, part of the names of cached files.
VERSION = 1
#: Side of ResNet-50's images.
RESNET50_SIDE = 224

#: Largest usual size of images whose pixels are tried without being asked for, in pixels.
SMALL = 64

#: Maps RGB images uint8 (b, side, side, 3) to features float32 (b, d).
Compute = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Extractor:
    """A way to compute features.

    Attributes
    ----------
    name : "pixels", "builtin" or "resnet50".
    words : the same in messages.
    side : pixels along a side of the images, which are resized to a square.
    digest : of the weights; "" without any.
    load : gives the computation on a device, "cpu" or "cuda:N".
    threads : True if passes may be computed side by side on a CPU.
    """

    name: str
    words: str
    side: int
    digest: str
    load: Callable[[str], Compute]
    threads: bool = True

    @property
    def seen(self) -> dict[str, Any]:
        """Record of the extractor, for `extractor_of`."""
        return {"by": self.name, "side": self.side, "weights": self.digest}


def pixels(side: int) -> Extractor:
    """Pixels in [0, 1], of images resized to ``side``."""

    def load(device: str) -> Compute:
        return lambda images: images.reshape(len(images), -1) / np.float32(255)

    return Extractor("pixels", f"pixels ({side} x {side})", side, "", load)


def builtin(side: int = BUILTIN_SIDE) -> Extractor:
    """Features of EfficientNet-Lite0. Raises UserError on `load` without its weights."""

    def load(device: str) -> Compute:
        xp = device_of(device).xp
        return Lite0(lite0_weights.load(), side, xp)

    words = f"built-in features (EfficientNet-Lite0, {side} x {side} pixels)"
    return Extractor("builtin", words, side, lite0_weights.SHA256, load)


def resnet50(weights: str) -> Extractor:
    """The paper's features of a ResNet-50 from a file of weights. Raises UserError without it."""
    variant_of(weights)

    def load(device: str) -> Compute:
        network = load_resnet50(weights)
        network.to_device(device_of(device))
        network.device.use()
        use_backend(choose_backend(network.device))

        def compute(images: np.ndarray) -> np.ndarray:
            with chainer.using_config("train", False), chainer.no_backprop_mode():
                x = network.device.send(prepare(images, network.variant, RESNET50_SIDE))
                return chainer.get_device("@numpy").send(network.pool5(x).array)

        return compute

    digest = files.digest(weights)
    return Extractor("resnet50", "ResNet-50's features", RESNET50_SIDE, digest, load, False)


def candidates(chosen: str, images: LabelledImages) -> list[Extractor]:
    """Extractors of ``--features``: "pixels", "builtin", or "auto", which is both of small images.

    Raises UserError if no image can be opened, or the built-in network's weights are needed and not
    installed.
    """
    side = usual_size(images)
    small, there = side <= SMALL, lite0_weights.installed() is not None
    if chosen == "auto" and not there:
        missing = f"no package {lite0_weights.PACKAGE}, which built-in features need"
        if not small:
            raise UserError(
                f"data {images.source!r}: images of about {side} pixels, and {missing}; expected "
                "it installed by pip, or --features FILE, --features pixels, --resnet50-weights "
                f"FILE, or --from-scratch --size {SMALL}"
            )
        _log.warning("%s: pixels alone are tried", missing)
    if chosen == "builtin" and not there:
        lite0_weights.load()
    by_pixels = chosen == "pixels" or (chosen == "auto" and small)
    by_network = chosen == "builtin" or (chosen == "auto" and there)
    return [builtin()] * by_network + [pixels(min(side, PIXELS_SIDE))] * by_pixels


def extractor_of(seen: Mapping[str, Any]) -> Extractor:
    """The extractor that a record of `Extractor.seen` names."""
    return {"pixels": pixels, "builtin": builtin}[seen["by"]](seen["side"])


def compute(
    paths: Sequence[str],
    extractor: Extractor,
    device: str = "cpu",
    where: str = "images",
    show: Callable[[int], str] | None = None,
) -> np.ndarray:
    """Features (n, d) float32 of image files, in order. They are cached under a digest of the
    files' contents, so that an interrupted computation resumes, and ends with the same bits.

    Parameters
    ----------
    where, show : name of the set, and of the image i, in messages.

    Raises
    ------
    UserError
        naming the images that cannot be decoded; for weights that are missing or damaged; or if
        the cache cannot be written.
    """
    problems, blocks = Problems(), []
    bar = Progress(extractor.words.partition(" (")[0].capitalize(), "images", len(paths))
    network: Compute | None = None
    threads = 1 if extractor.threads else usable_cores()
    with ThreadPoolExecutor(usable_cores()) as pool, threadpool_limits(threads):
        run = pool.map if extractor.threads and device == "cpu" else map
        for start in range(0, len(paths), BLOCK):
            some = paths[start : start + BLOCK]
            file = _cached(extractor, device, pool.map(_content, some))
            if (block := _read(file, len(some))) is None:
                images = list(pool.map(partial(_decoded, side=extractor.side), some))
                for i, image in enumerate(images, start):
                    if image is None:
                        problems.add("image cannot be decoded", show(i) if show else repr(paths[i]))
                if len(problems):  # all others are tried as well, to be named
                    bar.update(start + len(some))
                    continue
                network = network or extractor.load(device)
                parts = []
                for part in run(network, _batches([x for x in images if x is not None])):
                    parts.append(part)
                    bar.update(start + BATCH * len(parts))
                block = np.concatenate(parts)[: len(some)]
                _write(file, block)
            blocks.append(block)
    problems.raise_if_any(where)
    if network:
        bar.finish(len(paths))
    return np.concatenate(blocks)


def _decoded(path: str, side: int) -> np.ndarray | None:
    """RGB image resized to ``side`` x ``side``; None if it cannot be decoded. A large JPEG is
    decoded at a fraction of its size."""
    try:
        image = decoding.open_rgb(path, enough=2 * side)
    except UserError:
        return None
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))


def _batches(images: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Batches of `BATCH` images; the last one is filled up with images from the start."""
    number = -(-len(images) // BATCH)
    stacked = np.stack(images)
    return np.split(np.resize(stacked, (number * BATCH, *stacked.shape[1:])), number)


def _content(path: str) -> bytes:
    """Digest of a file; of one that cannot be read, none."""
    try:
        with files.opened(path) as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b""


def _cached(extractor: Extractor, device: str, contents: Iterable[bytes]) -> Path:
    """File in the cache for the features of images with these contents."""
    computed = device.partition(":")[0], extractor.name, extractor.side, extractor.digest
    digest = hashlib.sha256(f"{VERSION} {decoding.VERSION} {computed}".encode())
    digest.update(b"".join(contents))
    return cache() / "features" / f"{extractor.name}-{digest.hexdigest()[:16]}.npy"


def _read(file: Path, number: int) -> np.ndarray | None:
    """Features in a file of the cache; None if they are not there, or damaged."""
    try:
        block = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return block if len(block) == number else None


def _write(file: Path, block: np.ndarray) -> None:
    try:
        files.write(file, partial(np.save, arr=block))
    except UserError as error:
        raise UserError(f"{error} (CHAINER_DATASET_ROOT names another place)") from None
