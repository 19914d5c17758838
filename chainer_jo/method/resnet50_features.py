"""Pool5 features of a ResNet-50 for a whole data set, extracted once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import chainer
import numpy as np
from PIL import Image

from chainer_jo import files
from chainer_jo.data.array_cache import cached_blocks
from chainer_jo.data.progress import Progress
from chainer_jo.errors import UserError
from chainer_jo.method.resnet50 import ResNet50, Variant, load_resnet50, variant_of

#: Images per forward pass, and per file of the cache: an interrupted extraction loses one file.
BATCH = 50
BLOCK = 500


def prepare(images: np.ndarray, variant: Variant, size: int = 224) -> np.ndarray:
    """Network input (n, 3, size, size) float32 of RGB images (n, h, w, 3) uint8.

    Resized bilinearly, then brought to the channel order, mean and scale the weights were made for.
    """
    sides, how = (size, size), Image.Resampling.BILINEAR
    resized = np.stack([np.asarray(Image.fromarray(i).resize(sides, how)) for i in images])
    if variant.channels == "BGR":
        resized = resized[..., ::-1]
    x = (resized - np.asarray(variant.mean, np.float32)) / np.asarray(variant.std, np.float32)
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2), np.float32)


def pool5_features(
    images: np.ndarray, weights: str | Path, device: str = "@numpy", size: int = 224
) -> np.ndarray:
    """The paper's features of RGB images (n, h, w, 3) uint8: (n, 2048) float32, in their order.

    They are cached in Chainer's data set folder, under a digest of images and weights; an
    interrupted extraction resumes where it stopped.

    Parameters
    ----------
    weights : file for `load_resnet50`.
    device : where the network runs, e.g. ``@cupy:0``.
    size : the images are resized to size x size pixels.

    Raises UserError if the images are not RGB, the weights are no ResNet-50's, or the cache is not
    writable.
    """
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
        raise UserError(
            f"images of type {images.dtype}, shape {images.shape}: "
            "expected uint8 (n, h, w, 3) for a ResNet-50"
        )
    folder = _cache_folder(images, Path(weights), variant_of(weights), size)
    names = (f"{folder}/{start:07d}.npz" for start in range(0, len(images), BLOCK))
    bar = Progress("ResNet-50 features", "images", len(images))

    def load() -> Callable[[int, str], np.ndarray]:
        network = load_resnet50(weights)
        now = _cache_folder(images, Path(weights), variant_of(weights), size)
        files.check_unchanged(f"ResNet-50 weights {weights}", folder, now)
        network.to_device(device)
        return lambda i, _: _extract(network, images, i * BLOCK, size, bar)

    return np.concatenate(cached_blocks(names, load, bar))


def _extract(
    network: ResNet50, images: np.ndarray, start: int, size: int, bar: Progress
) -> np.ndarray:
    """Features of the block of images that begins at ``start``."""
    parts = []
    for i in range(start, min(start + BLOCK, len(images)), BATCH):
        parts.append(pool5(network, images[i : i + BATCH], size))
        bar.update(i + len(parts[-1]))
    return np.concatenate(parts)


def pool5(network: ResNet50, images: np.ndarray, size: int) -> np.ndarray:
    """Features (b, 2048) of a batch of RGB images (b, h, w, 3) uint8, on the network's device."""
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        x = network.device.send(prepare(images, network.variant, size))
        return chainer.get_device("@numpy").send(network.pool5(x).array)


def _cache_folder(images: np.ndarray, weights: Path, variant: str, size: int) -> str:
    """Folder of the cache for the features of these images under these weights."""
    with files.opened(weights) as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(f"{variant}{images.shape}{size}".encode())
    digest.update(np.ascontiguousarray(images).data)
    return f"resnet50-{digest.hexdigest()[:16]}"
