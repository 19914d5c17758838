"""`chainer-jo relabel` on CIFAR-10 as image files with 40 % symmetric noise.

    python benchmarks/photographs.py --data cifar10-jpeg.tar.xz --numbers 1000 --mixed \\
        --json FILE.json

Each measurement is the command from a new process to its report, with an empty cache. With
`--mixed` images are enlarged to 200 to 500 pixels, in several modes, formats and orientations.
Records are added to the file one by one and replace records of the same measurement.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from chainer_jo import files, seeds  # noqa: E402  (before chainer)

# isort: split
import chainer  # noqa: E402
import machine  # noqa: E402
from PIL import Image  # noqa: E402

from chainer_jo.data import source  # noqa: E402
from chainer_jo.devices import usable_cores  # noqa: E402
from chainer_jo.method import noise  # noqa: E402
from chainer_jo.relabel.outcome.outcome import choice_in_words  # noqa: E402
from chainer_jo.relabel.read import label_table  # noqa: E402
from chainer_jo.relabel.write.results_folder import MADE  # noqa: E402
from chainer_jo.reproduction.running.provenance import provenance  # noqa: E402

RATE = 0.4
FORMATS = (("RGB", "jpg"), ("L", "png"), ("RGB", "webp"), ("RGBA", "png"), ("CMYK", "jpg"))
COMMAND = "from chainer_jo.relabel.cli import main; main()"
ORIENTATION = 0x0112  # EXIF's tag


def write(folder: Path, spec: str, number: int, mixed: bool) -> None:
    """Images of the training set, drawn at random, with `labels.csv` and `true.csv`."""
    data = source.find(spec).load()
    rng = seeds.generator(0, "noise")
    rows = rng.permutation(len(data.train.images))[:number]
    true = data.train.labels[rows]
    given = noise.symmetric(true, RATE, data.num_classes, rng)
    paths = []
    for i, row in enumerate(rows.tolist()):
        image, (mode, ending), exif = Image.fromarray(data.train.images[row]), ("RGB", "png"), None
        if mixed:
            mode, ending = FORMATS[i % len(FORMATS)]
            image = image.resize(
                tuple(rng.integers(200, 501, 2).tolist()), Image.Resampling.BICUBIC
            )
            image = image.convert(mode)
            if ending == "jpg" and i % 2:  # stored upside down, as by a camera that was
                image, exif = image.transpose(Image.Transpose.ROTATE_180), Image.Exif()
                exif[ORIENTATION] = 3
        paths.append(f"{i:05d}.{ending}")
        image.save(folder / paths[-1], **({"exif": exif} if exif else {}))
    for name, labels in (("labels.csv", given), ("true.csv", true)):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            columns = {"path": paths, "label": [data.class_names[k] for k in labels]}
            label_table.write(file, columns)


def label_accuracy(corrected: Path, true: Path) -> dict[str, float]:
    """Percentages of correct labels in the columns "given" and "new"."""
    with open(true, newline="", encoding="utf-8") as file:
        right = {row["path"]: row["label"] for row in csv.DictReader(file)}
    with open(corrected, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        column: 100 * sum(row[column] == right[row["path"]] for row in rows) / len(rows)
        for column in ("given", "new")
    }


def measure(spec: str, number: int, mixed: bool) -> dict:
    """Shares of correct labels, and seconds: by the clock, and of all processors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "photos").mkdir()
        write(folder / "photos", spec, number, mixed)
        words = ["relabel", "photos/labels.csv", "--out", "out", "--true-labels", "photos/true.csv"]
        environment = {**os.environ, "CHAINER_DATASET_ROOT": f"{folder}/cache"}
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *sys.path])
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", COMMAND, *words]
        subprocess.run(command, cwd=folder, env=environment, check=True)
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        correct = label_accuracy(folder / "out/labels.csv", folder / "photos/true.csv")
        choice = files.read_json(folder / "out" / MADE)["choice"]
    return {
        "right_before": correct["given"],
        "right": correct["new"],
        "choice": choice and choice_in_words(choice),
        "seconds": seconds,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", required=True, help="CIFAR-10, as for the scripts in reproduce/")
    add("--numbers", type=int, nargs="+", required=True, help="numbers of images")
    add("--mixed", action="store_true", help="enlarged, in several modes and formats")
    add("--json", type=Path, required=True, help="the file to write or to add to")
    add("--note", default="", help="about the machine at that time")
    flags = parser.parse_args(arguments)
    keys = "number", "mixed"
    result = files.read_json(flags.json, missing={"records": []})
    about = {
        "note": flags.note,
        "machine": machine.describe(usable_cores()),
        "provenance": provenance(chainer.get_device("@numpy"), None),
    }
    for number in flags.numbers:
        key = (number, flags.mixed)
        record = {**dict(zip(keys, key, strict=True)), **measure(flags.data, *key), **about}
        others = [r for r in result["records"] if tuple(r[k] for k in keys) != key]
        result["records"] = [*others, record]
        files.write_json(flags.json, result)
        print(record, flush=True)


if __name__ == "__main__":
    main()
