"""Features of people's own images, computed by any model, and joined to the images by their
paths."""

from __future__ import annotations

import logging
import posixpath
import zipfile
from pathlib import Path

import numpy as np

from chainer_jo import files
from chainer_jo.datasets.problems import Problems
from chainer_jo.errors import UserError
from chainer_jo.relabel.labelled_images import LabelledImages

#: Times the median norm of all rows from which on a row is noted.
FAR = 100
_log = logging.getLogger(__name__)


def read_features(file: str | Path, images: LabelledImages) -> np.ndarray:
    """The features of the images, in their order: float32 (n, d).

    The file is an ``.npz`` with an array `features` (rows, d) and the images' `paths` (rows,), as
    in the images' table or below their folder, in any order; rows of other images do not matter.

    Raises
    ------
    UserError
        if the file has no such arrays, a path twice, no row for an image, or numbers that are not
        finite.
    """
    features, paths = read_arrays(file)
    where = f"features {str(file)!r}"
    row_of: dict[str, int] = {}
    for row, path in enumerate(map(posixpath.normpath, paths)):
        if row_of.setdefault(path, row) != row:
            raise UserError(f"{where}: rows {row_of[path]} and {row} are both of {path!r}")
    problems = Problems()
    rows = np.zeros(len(images), np.int64)
    for i, path in enumerate(images.paths):
        rows[i] = row_of.get(path, -1)
        if rows[i] < 0:
            problems.add(f"no row for an image of {images.source!r}", images.show(i))
    if len(problems) and paths:
        problems.add(f"its paths are such as {paths[0]!r}")
    problems.raise_if_any(where)
    chosen = np.ascontiguousarray(features[rows], np.float32)
    for i in np.flatnonzero(~np.isfinite(chosen).all(axis=1)):
        problems.add("numbers that are not finite", images.show(int(i)))
    problems.raise_if_any(where)
    _note_far_rows(where, chosen, images)
    return chosen


def _note_far_rows(where: str, features: np.ndarray, images: LabelledImages) -> None:
    """All rows are divided by one scale: a single wild one makes all others look the same."""
    norms = np.sqrt(np.einsum("nd,nd->n", features, features, dtype=np.float64))
    far = np.flatnonzero(norms > FAR * np.median(norms))
    if len(far) and np.median(norms):
        notes = Problems()
        for i in far:
            notes.add(f"numbers more than {FAR} times as large as usual", images.show(int(i)))
        _log.warning("%s: %s", where, notes.lines()[0])


def read_arrays(file: str | Path) -> tuple[np.ndarray, list[str]]:
    """All features (rows, d) of a file, and their paths.

    Raises UserError for a file without such arrays.
    """
    try:
        with open(file, "rb") as opened:
            # NumPy takes anything else for a pickle, and advises to load it nevertheless.
            if not zipfile.is_zipfile(opened):
                raise zipfile.BadZipFile("not an .npz")
            opened.seek(0)
            with np.load(opened, allow_pickle=False) as archive:
                features, paths = archive["features"], archive["paths"]
        texts = [p.decode() if isinstance(p, bytes) else p for p in paths.tolist()]
    except files.NOT_AN_NPZ as error:
        raise UserError(
            f"features {str(file)!r}: {error}, expected an .npz with arrays 'features' (images, "
            "dimensions) and 'paths' (images,), text and no objects"
        ) from None
    numbers = features.dtype.kind in "fiu" and features.ndim == 2 and features.shape[1]
    if not numbers or paths.shape != features.shape[:1] or paths.dtype.kind not in "US":
        raise UserError(
            f"features {str(file)!r}: 'features' is {features.dtype} {features.shape}, 'paths' "
            f"{paths.dtype} {paths.shape}, expected numbers (images, one dimension or more) and as "
            "many texts"
        )
    return features, texts
