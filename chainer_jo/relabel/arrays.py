"""Label errors of what people have in Python: arrays or a DataFrame in, a table out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.relabel import label_errors
from chainer_jo.relabel.label_errors import LabelErrors

LARGEST = 1e14
UNUSABLE = f"numbers that are not finite, or beyond {LARGEST:g}"


def find_label_errors(
    probabilities: Any, labels: Any, class_names: Sequence[Any] | None = None
) -> LabelErrors:
    """Finds wrong labels by probabilities of any model that was not trained on them, out of fold of
    a cross validation, say. See `LabelErrors.table` for a table.

    Parameters
    ----------
    probabilities : (n, c) numbers that are not negative, an array or a DataFrame.
    labels : (n,) classes as given: integers, text or anything that can be sorted.
    class_names : what the c columns stand for. By default the names of a DataFrame's columns; or
        0 to c - 1, where labels are among them; or the labels' own classes, sorted.

    Raises
    ------
    UserError
        a ValueError, for arrays of other shapes, numbers that are not finite, labels that are none
        of the classes, or tables with their rows in different orders.
    """
    index = _index(probabilities, labels)
    numbers = matrix("probabilities", probabilities)
    if (numbers < 0).any() or not numbers.sum(axis=1).all():
        raise UserError("probabilities: expected no negative ones, and in each row one that is not")
    given = _labels(labels, len(numbers))
    columns = getattr(probabilities, "columns", None)
    names = _names(class_names, columns, given, numbers.shape[1])
    errors = label_errors.find_label_errors(numbers, _encoded(given, names), names)
    return replace(errors, index=index)


def relabel(features: Any, labels: Any, seed: int = 0, **settings: Any) -> LabelErrors:
    """Finds wrong labels by features that any model has computed, of images or anything else: small
    networks are trained on them, seconds for thousands.

    Parameters
    ----------
    features : (n, d) numbers, an array or a DataFrame.
    labels : (n,) classes as given, of two kinds or more; or the name of the DataFrame's column that
        has them.
    seed : of everything random.
    settings : fields of `training.Recipe`.

    Raises
    ------
    UserError
        a ValueError, for arrays of other shapes, numbers that are not finite, fewer than two
        classes, too few rows, tables with their rows in different orders, or training that
        diverged.
    """
    from chainer_jo.relabel import training  # and with it Chainer

    data, given, names, index = training_arrays(features, labels)
    chosen = training.Recipe(**settings)
    errors = training.judge(data, given, names, chosen, seed)
    return replace(errors, index=index)


def training_arrays(features: Any, labels: Any) -> tuple[Any, np.ndarray, np.ndarray, Any]:
    """What `relabel` takes as networks want it: a `FeatureSet`, labels int32 (n,), the classes'
    names, and the index of the rows."""
    from chainer_jo.relabel.features import FeatureSet

    if np.ndim(labels) == 0 and hasattr(features, "columns"):
        if labels not in features.columns:
            raise UserError(f"labels {labels!r}: expected a column of the features' table")
        features, labels = features.drop(columns=labels), features[labels]
    numbers = matrix("features", features)
    given = _labels(labels, len(numbers))
    names = np.unique(given)
    if len(names) < 2:
        raise UserError(f"labels: all are {names.tolist()[0]!r}, expected two classes or more")
    if (numbers == numbers[0]).all():
        raise UserError("features: the same in all rows, expected what tells them apart")
    codes = _encoded(given, names)
    return FeatureSet(numbers, codes), codes, names, _index(features, labels)


def matrix(name: str, values: Any, width: int | None = None) -> np.ndarray:
    """Numbers (rows, columns) float64, finite in float32; of a certain width if one is given."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        where = f"{name}, column {of!r}" if (of := _no_numbers(values)) is not None else name
        raise UserError(f"{where}: {error}, expected numbers") from None
    if numbers.ndim != 2 or 0 in numbers.shape:
        raise UserError(f"{name}: shape {numbers.shape}, expected (rows, one column or more)")
    if width not in (None, numbers.shape[1]):
        raise UserError(f"{name}: {numbers.shape[1]} columns, expected {width} as in training")
    if len(bad := unusable(numbers)):
        raise UserError(f"{name}: row {bad[0]} has {UNUSABLE}")
    return numbers


def _no_numbers(table: Any) -> Any:
    """The name of the first column of a DataFrame that has something else than numbers."""
    for name in getattr(table, "columns", ()):
        try:
            np.asarray(table[name], np.float64)
        except (TypeError, ValueError):
            return name
    return None


def unusable(numbers: np.ndarray) -> np.ndarray:
    """The rows of (rows, columns) with numbers that nothing can be computed of in float32: the sum
    of squares of a billion of those that can is finite."""
    return np.flatnonzero(~(np.abs(numbers) <= LARGEST).all(axis=1))


def _labels(labels: Any, n: int) -> np.ndarray:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise UserError(f"labels: shape {given.shape}, expected ({n},), one for each row")
    # Not equal to itself is NaN; of pandas' NA it is not even known.
    missing = [i for i, x in enumerate(given.tolist()) if x is None or (x != x) is not False]
    if given.dtype.kind == "U":  # NumPy makes text of a NaN in a list of text
        missing += [i for i, x in enumerate(labels) if isinstance(x, float) and x != x]
    if missing:
        raise UserError(f"labels: row {missing[0]} has none, expected a label for every row")
    if given.dtype == object:
        given = np.array(given.tolist())
    return given


def _names(
    class_names: Sequence[Any] | None, columns: Any, given: np.ndarray, width: int
) -> np.ndarray:
    found = np.unique(given)
    if class_names is not None:
        names = np.asarray(class_names)
    elif columns is not None and np.isin(found, columns).all():
        names = np.asarray(columns)
    elif (
        columns is not None
        and (
            set(map(str, found)) & set(map(str, columns))
            or (found.dtype.kind == "U" and any(isinstance(name, str) for name in columns))
        )
        and not np.array_equal(columns, np.arange(width))
    ):
        missing = next(name for name in found.tolist() if name not in columns)
        raise UserError(
            f"probabilities: labels such as {missing!r} are not among the columns {list(columns)}, "
            "expected class_names, the classes that the columns stand for"
        )
    elif given.dtype.kind in "iu" and found[0] >= 0 and found[-1] < width:
        names = np.arange(width)
    else:
        names = found
    if names.shape != (width,):
        raise UserError(
            f"probabilities: {width} columns for {len(names)} classes, expected class_names, the "
            "classes that the columns stand for"
        )
    return names


def _encoded(given: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Labels as indices of classes."""
    order = np.argsort(names)
    places = np.searchsorted(names[order], given).clip(max=len(names) - 1)
    codes = order[places].astype(np.int32)
    wrong = np.flatnonzero(names[codes] != given)
    if len(wrong):
        raise UserError(f"labels: {given.tolist()[wrong[0]]!r} is none of the {len(names)} classes")
    return codes


def _index(*tables: Any) -> Any:
    """Of the first that has one, as those of pandas do. A list has a method of that name.

    Raises UserError if another has the same one in another order: rows go by position.
    """
    found = (getattr(table, "index", None) for table in tables)
    indices = [index for index in found if index is not None and not callable(index)]
    for other in indices[1:]:
        here, there = (index.tolist() for index in (indices[0], other))
        if here != there and set(here) == set(there):
            raise UserError(
                f"labels: their index is that of the rows in another order, {there[0]!r} first for "
                f"{here[0]!r}, expected the same order, or arrays"
            )
    return indices[0] if indices else None
