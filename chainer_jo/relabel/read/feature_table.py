"""Reads features or probabilities that any model has computed, joined to the images by path."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np

from chainer_jo import files
from chainer_jo.data.input_problems import UNUSABLE, Problems, unusable
from chainer_jo.errors import UserError, one_line
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.labelled_images import LabelledImages

#: Norm from which on a row is noted, relative to the median of all rows.
FAR_NORM_RATIO = 100
_log = logging.getLogger(__name__)


def read_features(file: str | Path, images: LabelledImages) -> np.ndarray:
    """Features (n, d) of the images as of `read_rows`. Raises UserError also for the same numbers
    for all images."""
    chosen, _ = read_rows(file, images, "features")
    where = f"features {str(file)!r}"
    check_different(where, chosen)
    _note_far_rows(where, chosen, images)
    return chosen


def check_different(where: str, features: np.ndarray) -> None:
    """Raises UserError for features that are the same for all images."""
    if (features == features[0]).all():
        raise UserError(f"{where}: every image has the same numbers, expected numbers that differ")


def read_rows(
    file: str | Path, images: LabelledImages, kind: str
) -> tuple[np.ndarray, list[str] | None]:
    """Rows (n, d) of the array `kind` of a file, in the order of the images, float32 or float64;
    and the names in its array `class_names`, if there is one.

    The file is an ``.npz`` with the array (rows, d) and the images' `paths` (rows,), as in the
    images' table or below their folder, in any order; rows of other images do not matter. Or it is
    an ``.npy`` with a row for each row of the images' table, in its order.

    Raises UserError if the file has no such arrays, a path twice, no row for an image, or numbers
    that are not finite.
    """
    where = f"{kind} {str(file)!r}"
    if str(file).endswith(".npy"):
        return usable(where, _in_order(where, file, images, kind), images.show), None
    numbers, paths, names = read_arrays(file, kind)
    return usable(where, numbers[_rows(where, paths, images)], images.show), names


def usable(where: str, numbers: np.ndarray, show: Callable[[int], str]) -> np.ndarray:
    """Numbers (n, d) of n images as float32 or float64. Raises UserError for unusable ones; `show`
    gives the name of an image."""
    numbers = np.asarray(numbers, np.result_type(numbers, np.float32))
    problems = Problems()
    for i in unusable(numbers):
        problems.add(UNUSABLE, show(int(i)))
    problems.raise_if_any(where)
    return numbers


def _rows(where: str, paths: list[str], images: LabelledImages) -> np.ndarray:
    """Row (n,) of each image."""
    row_of: dict[str, int] = {}
    root = PurePosixPath(images.root)
    for row, path in enumerate(label_table.key(label_table.below(root, path)) for path in paths):
        if row_of.setdefault(path, row) != row:
            raise UserError(f"{where}: rows {row_of[path]} and {row} are both of {path!r}")
    problems = Problems()
    rows = [row_of.get(label_table.key(path), -1) for path in images.paths]
    for i in (i for i, row in enumerate(rows) if row < 0):
        problems.add(f"no row for an image of {images.source!r}", images.show(i))
    if len(problems) and paths:
        problems.add(f"its paths are such as {paths[0]!r}")
    problems.raise_if_any(where)
    return np.array(rows)


def _in_order(where: str, file: str | Path, images: LabelledImages, kind: str) -> np.ndarray:
    """Rows of an array alone, which are in the order of the images."""
    if not images.lines:
        raise UserError(
            f"{where}: an .npy has no paths, expected one with a table of images alone, whose "
            f"order it has, or an .npz with {kind!r} and 'paths'"
        )
    try:
        features = files.load_mapped(file)
        if not isinstance(features, np.ndarray):
            raise ValueError("an .npz")
    except Exception as error:  # a damaged archive can raise anything
        raise UserError(f"{where}: {one_line(error)}, expected an array") from None
    numbers = features.dtype.kind in "fiu" and features.itemsize <= 8
    if not numbers or features.ndim != 2 or not features.shape[1] or len(features) != len(images):
        raise UserError(
            f"{where}: {features.dtype} {features.shape}, expected numbers ({len(images)} images "
            f"as in {images.source!r}, one dimension or more)"
        )
    return features


def _note_far_rows(where: str, features: np.ndarray, images: LabelledImages) -> None:
    """Warns of outliers: one scale divides all rows, so that one outlier makes all others equal."""
    norms = np.sqrt(np.einsum("nd,nd->n", features, features, dtype=np.float64))
    usual, notes = np.median(norms), Problems()
    for i in np.flatnonzero(norms > FAR_NORM_RATIO * usual) if usual else ():
        kind = f"numbers more than {FAR_NORM_RATIO} times as large as usual"
        notes.add(kind, images.show(int(i)))
    for note in notes.lines():
        _log.warning("%s: %s", where, note)


def _texts(array: np.ndarray) -> list:
    return [text.decode() if isinstance(text, bytes) else text for text in array.tolist()]


def read_arrays(file: str | Path, kind: str) -> tuple[np.ndarray, list[str], list[str] | None]:
    """All rows (rows, d) of the array `kind`, their paths, and the names in `class_names`, if there
    are some. Raises UserError for a file without such arrays."""
    where = f"{kind} {str(file)!r}"
    try:
        arrays = files.arrays(file, (kind, "paths", "class_names"))
        numbers, paths, names = arrays[kind], arrays["paths"], arrays.get("class_names")
        texts, classes = _texts(paths), None
        if names is not None:
            classes = [unicodedata.normalize("NFC", str(name)) for name in _texts(names)]
    except Exception as error:  # a damaged archive can raise anything
        reason = f"no array {error}" if isinstance(error, KeyError) else one_line(error)
        raise UserError(
            f"{where}: {reason}, expected an .npz with arrays {kind!r} (images, dimensions) and "
            "'paths' (images,), text and no objects"
        ) from None
    fits = numbers.dtype.kind in "fiu" and numbers.ndim == 2 and numbers.shape[1]
    if not fits or paths.shape != numbers.shape[:1] or paths.dtype.kind not in "US":
        raise UserError(
            f"{where}: {kind!r} is {numbers.dtype} {numbers.shape}, 'paths' {paths.dtype} "
            f"{paths.shape}, expected numbers (images, one dimension or more) and as many texts"
        )
    return numbers, texts, classes
