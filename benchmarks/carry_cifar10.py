"""The official CIFAR-10 for a machine that takes 64 MiB a call: three parts of some 46 MB as PNG.

    python benchmarks/carry_cifar10.py pack cifar-10-batches-py gpu-session/images
    python benchmarks/carry_cifar10.py unpack gpu-session/images gpu-session/cifar-10-batches-py

`pack` writes gpu-session/images.0 to .2, each with two of the six batches: every row of a PNG is an
image. `unpack` makes the folder of the official archive again, for DATA of gpu_session.sh. A folder
of results accepts no other pixels or labels than before.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from chainer_jo.command_line import start  # noqa: E402
from chainer_jo.data import cifar10  # noqa: E402
from chainer_jo.errors import UserError  # noqa: E402

BATCHES = *(f"data_batch_{i}" for i in range(1, 6)), "test_batch"
PARTS = 3
META = "batches.meta"


def part(folder: Path, batch: int) -> Path:
    """Folder that carries a batch."""
    return folder.with_name(f"{folder.name}.{batch * PARTS // len(BATCHES)}")


def pack(source: Path, target: Path) -> None:
    """Writes the parts of CIFAR-10's folder."""
    data = cifar10.load_folder(source)
    images = np.concatenate([data.train_images, data.test_images])
    labels = np.concatenate([data.true_labels, data.test_labels])
    size = len(data.test_images)
    for i, name in enumerate(BATCHES):
        folder, batch = part(target, i), slice(i * size, (i + 1) * size)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[batch].reshape(size, -1, 3)).save(folder / f"{name}.png")
        about = {"labels": labels[batch].tolist(), "classes": data.class_names}
        (folder / f"{name}.json").write_text(json.dumps(about))


def unpack(source: Path, target: Path) -> None:
    """Makes CIFAR-10's folder of the parts."""
    target.mkdir(parents=True, exist_ok=True)
    Image.MAX_IMAGE_PIXELS = None
    for i, name in enumerate(BATCHES):
        path = part(source, i) / f"{name}.png"
        if not path.exists():
            raise UserError(f"{path}: not there, expected all {PARTS} parts")
        pixels = np.asarray(Image.open(path))
        about = json.loads(path.with_suffix(".json").read_text())
        rows = np.ascontiguousarray(pixels.transpose(0, 2, 1)).reshape(len(pixels), -1)
        (target / name).write_bytes(pickle.dumps({"data": rows, "labels": about["labels"]}))
    (target / META).write_bytes(pickle.dumps({"label_names": list(about["classes"])}))


def main(arguments: list[str] | None = None) -> None:
    def parse() -> argparse.Namespace:
        parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
        parser.add_argument("action", choices=("pack", "unpack"))
        parser.add_argument("source", type=Path)
        parser.add_argument("target", type=Path)
        return parser.parse_args(arguments)

    actions = {"pack": pack, "unpack": unpack}
    start(parse, lambda flags: actions[flags.action](flags.source, flags.target))


if __name__ == "__main__":
    main()
