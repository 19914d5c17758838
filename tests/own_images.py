"""A small set of images of one's own, and `chainer-jo` on it as a user meets it."""

import csv
import json
import re
from contextlib import contextmanager

import numpy as np
import pytest
from chainer.dataset import download
from PIL import Image

from chainer_jo.relabel import cli

#: Two that are easily told apart, and one that a single image has.
DARK, LIGHT, ODD = 'dark, "black"', "hell wie Schnee", "é"
TRAINING = ("--epochs", "2", "--device", "cpu", "--threads", "1")
SHORT = ("--features", "pixels", *TRAINING)
BY_FEATURES = ("--epochs", "4", "--device", "cpu")


@contextmanager
def read_only(root, cache):
    """The set that `make` makes, which nothing may be written to; a cache that starts empty."""
    make(root)
    for path in root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root.chmod(0o555)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "_dataset_root", str(cache))
        yield root


def make(root, number=60, wrong=5, prefix=""):
    """Dark and light images; the labels of a few are wrong, every image has an annotator."""
    rng = np.random.default_rng(0)
    rows, true = [], []
    for i in range(number):
        kind = (DARK, LIGHT)[i % 2] if i else ODD
        low = {DARK: 0, LIGHT: 156, ODD: 80}[kind]
        path = f"images/{prefix}{i:02d}, é.png"
        (root / "images").mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(low, low + 100, (8, 8)).astype(np.uint8)
        Image.fromarray(pixels).save(root / path)
        swapped = {DARK: LIGHT, LIGHT: DARK}.get(kind)
        rows.append((path, swapped if 0 < i <= wrong else kind, f"worker {i % 3}", "n/a"))
        true.append((path, kind))
    write(root / "labels.csv", [("path", "label", "annotator", "new"), *rows])
    write(root / "true.csv", [("path", "label"), *true])
    features = [np.asarray(Image.open(root / row[0])).ravel() / 255 for row in rows]
    np.savez(root / "features.npz", features=features, paths=np.array([row[0] for row in rows]))
    return root


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def files_below(folder):
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def run(*arguments):
    """The command as a new process would do it; its exit code."""
    try:
        cli.main([str(a) for a in arguments])
    except SystemExit as end:
        return end.code
    return 0


def relabel(root, out, *words):
    """The exit code of the command on the table of a folder."""
    return run("relabel", root / "labels.csv", "--out", out, *words)


def content(page):
    """What the script of a page shows."""
    found = re.search(r'id="content">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
    return json.loads(found[1])


def by_features(root):
    """Flags for features of the images in a folder that `make` made."""
    return ("--features", root / "features.npz", *BY_FEATURES)


def one_line(capsys):
    lines = capsys.readouterr().err.splitlines()
    error = [line for line in lines if not line.startswith(("note:", "Decoding:", "Training:"))]
    assert len(error) == 1, error
    return error[0]
