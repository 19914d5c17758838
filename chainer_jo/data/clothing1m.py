"""Clothing1M in its published layout: list files are parsed, checked and joined.

The folder holds `images/`, `category_names_eng.txt` (14 lines), the labels `noisy_label_kv.txt` and
`clean_label_kv.txt` (`key label` per line), and the lists `noisy_train_key_list.txt`,
`clean_train_key_list.txt`, `clean_val_key_list.txt` and `clean_test_key_list.txt` (one key per
line). A key is an image's path inside the folder, such as `images/0/00/1,2.jpg`.

Section 5.1: training uses the million noisy images alone, validation and test the clean ones; the
clean training images stay unused.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from posixpath import normpath

import numpy as np

from chainer_jo import files
from chainer_jo.data.input_problems import Problems
from chainer_jo.data.labelled_data import UNKNOWN, Labelled, LabelledData, as_keys

NAME = "clothing1m"

CLASS_NAMES = (
    "T-shirt", "Shirt", "Knitwear", "Chiffon", "Sweater", "Hoodie", "Windbreaker",
    "Jacket", "Down Coat", "Suit", "Shawl", "Dress", "Vest", "Underwear",
)  # fmt: skip
CATEGORY_FILE = "category_names_eng.txt"
NOISY_LABELS, CLEAN_LABELS = "noisy_label_kv.txt", "clean_label_kv.txt"
NOISY_TRAIN, CLEAN_TRAIN = "noisy_train_key_list.txt", "clean_train_key_list.txt"
CLEAN_VALIDATION, CLEAN_TEST = "clean_val_key_list.txt", "clean_test_key_list.txt"
KEY_LISTS = {  # each list, and where the labels of its keys are
    NOISY_TRAIN: NOISY_LABELS,
    CLEAN_TRAIN: CLEAN_LABELS,
    CLEAN_VALIDATION: CLEAN_LABELS,
    CLEAN_TEST: CLEAN_LABELS,
}
PUBLISHED_COUNTS = {  # noisy and clean images, as Section 5.1 rounds them
    NOISY_TRAIN: 1_000_000,
    CLEAN_TRAIN: 50_000,
    CLEAN_VALIDATION: 14_000,
    CLEAN_TEST: 10_000,
}


def load(root: str | Path, name: str | None = None) -> LabelledData:
    """Parses the list files below `root`; does not open images.

    Parameters
    ----------
    name : name of the data set; None for ``clothing1m`` if the lists have the published lengths
        within 10 %, and the folder's name otherwise.

    Raises UserError, naming every kind of problem at once: missing or empty file, duplicate key,
    unknown label, key without a label, key in two lists.
    """
    root, problems = Path(root), Problems()
    class_names = _read_class_names(root, problems)
    labels = {name: _read_labels(root, name, problems) for name in (NOISY_LABELS, CLEAN_LABELS)}
    keys = {name: _read_keys(root, name, problems) for name in KEY_LISTS}
    _check_disjoint(keys, problems)
    sets = {}
    for listed, source in KEY_LISTS.items():
        if labels[source]:  # a label file that is missing or empty is one problem, not a million
            for key in keys[listed]:
                if key not in labels[source]:
                    problems.add(f"{listed}: key without a label in {source}", _show(key))
        sets[listed] = Labelled(
            as_keys(map(bytes.decode, keys[listed])),
            labels=_look_up(labels[source], keys[listed]),
            true_labels=_look_up(labels[CLEAN_LABELS], keys[listed]),
        )
    problems.raise_if_any(f"Clothing1M folder {str(root)!r}")
    if any(abs(len(sets[each]) - n) > n // 10 for each, n in PUBLISHED_COUNTS.items()):
        folder = root.resolve().name
        name = name or (f"{NAME}-part" if folder == NAME else folder)
    train, validation, test = (sets[each] for each in (NOISY_TRAIN, CLEAN_VALIDATION, CLEAN_TEST))
    return LabelledData(name or NAME, class_names, train, validation, test, str(root))


def _look_up(labels: dict[bytes, int], keys: list[bytes]) -> np.ndarray:
    return np.fromiter((labels.get(key, UNKNOWN) for key in keys), np.int32, len(keys))


def _check_disjoint(keys: dict[str, list[bytes]], problems: Problems) -> None:
    owner: dict[bytes, str] = {}
    for name, listed in keys.items():
        for key in listed:
            if (other := owner.setdefault(key, name)) != name:
                problems.add(f"key both in {other} and in {name}", _show(key))


def _show(line: bytes) -> str:
    return repr(line.decode(errors="replace"))


def _read_lines(root: Path, name: str, problems: Problems) -> list[bytes]:
    try:
        lines = files.content(root / name).removeprefix(codecs.BOM_UTF8).splitlines()
    except FileNotFoundError:
        problems.add("file missing", name)
        return []
    except OSError as error:
        problems.add(f"{name}: {error.strerror}")
        return []
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        problems.add("file empty", name)
    return lines


def _read_class_names(root: Path, problems: Problems) -> tuple[str, ...]:
    lines = _read_lines(root, CATEGORY_FILE, problems)
    names = tuple(line.decode(errors="replace") for line in lines)
    if names and len(names) != len(CLASS_NAMES):
        problems.add(f"{CATEGORY_FILE}: {len(names)} classes, expected {len(CLASS_NAMES)}")
    if len(set(names)) != len(names):
        problems.add(f"{CATEGORY_FILE}: a class is named twice", ", ".join(names))
    return names


def _read_labels(root: Path, name: str, problems: Problems) -> dict[bytes, int]:
    indices = {str(i).encode(): i for i in range(len(CLASS_NAMES))}
    labels: dict[bytes, int] = {}
    for number, line in enumerate(_read_lines(root, name, problems), 1):
        key, _, label = line.rpartition(b" ")
        if not key or label not in indices:
            problems.add(
                f"{name}: not 'key label' with a label from 0 to {len(CLASS_NAMES) - 1}",
                f"line {number}, {_show(line)}",
            )
        elif key in labels:
            problems.add(f"{name}: duplicate key", _show(key))
        else:
            labels[key] = indices[label]
    return labels


def _read_keys(root: Path, name: str, problems: Problems) -> list[bytes]:
    keys: dict[bytes, None] = {}
    for key in _read_lines(root, name, problems):
        if key in keys:
            problems.add(f"{name}: duplicate key", _show(key))
        elif not _stays_inside(key):
            problems.add(f"{name}: key is not a path inside the folder", _show(key))
        else:
            keys[key] = None
    return list(keys)


def _stays_inside(key: bytes) -> bool:
    """True for a normalised path below the folder: a second spelling would be a second key."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return False
    outside = text[0] == "/" or text == ".." or text.startswith("../") or "\0" in text
    return not outside and text == normpath(text)
