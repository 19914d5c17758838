"""Label errors of arrays and DataFrames: the Python functions for everybody."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import Any

import numpy as np

from chainer_jo.data.input_problems import LARGEST, unusable
from chainer_jo.data.labelled_data import UNKNOWN, by_value, check_columns
from chainer_jo.errors import UserError, one_line
from chainer_jo.relabel.estimate import label_errors, label_noise
from chainer_jo.relabel.estimate.label_errors import ClassNames, LabelErrors
from chainer_jo.relabel.estimate.recipe import Recipe

EXPECTED_NAMES = "expected class_names, the classes that the columns stand for"


def find_label_errors(
    labels: Any, pred_probs: Any, class_names: ClassNames | None = None
) -> LabelErrors:
    """Finds wrong labels by probabilities of any model that was not trained on them, out of fold of
    a cross validation, say. See `LabelErrors.table` for a table.

    >>> pred_probs = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]] * 9
    >>> labels = ["cat", "dog", "dog"] + ["cat", "cat", "dog"] * 8
    >>> find_label_errors(labels, pred_probs).changed[:3]
    array([False,  True, False])

    Parameters
    ----------
    labels : (n,) classes as given: integers, text or anything that can be sorted; or (n, m), m
        labels an image, None or NaN in empty places.
    pred_probs : (n, c) numbers from 0 on, an array or a table (see `column_names`).
    class_names : of the c columns. By default the names of a table's columns; or
        0 to c - 1, where labels are among them; or the labels' own classes, sorted.

    Raises UserError, a ValueError, for arrays of other shapes, numbers that are not finite, labels
    that are none of the classes, columns of no certain class, or tables whose rows are not the
    same.
    """
    index = common_index(pred_probs, labels)
    numbers = matrix("pred_probs", pred_probs)
    if (numbers < 0).any() or not numbers.sum(axis=1).all():
        raise UserError("pred_probs: expected numbers from 0 on, at least one positive a row")
    given, present = _labels(labels, len(numbers))
    names = _names(class_names, column_names(pred_probs), given, numbers)
    errors = label_errors.find_label_errors(_encoded(given, names, present), numbers, names)
    return replace(errors, index=index)


def relabel(features: Any, labels: Any, seed: int = 0, **settings: Any) -> LabelErrors:
    """Finds wrong labels by features that any model has computed, of images or anything else: small
    networks are trained on them, seconds for thousands.

    >>> features = [[i, j] for i in (0, 8) for j in range(30)]  # 30 cats, 30 dogs
    >>> relabel(features, ["cat"] * 29 + ["dog"] * 31).changed.nonzero()
    (array([29]),)

    Parameters
    ----------
    features : (n, d) numbers, an array or a table (see `column_names`).
    labels : (n,) classes as given, of two kinds or more; or the name of the table's column that
        has them; or (n, m), m labels an image, None or NaN in empty places.
    seed : of folds, weights and data order.
    settings : fields of `Recipe`.

    Raises UserError, a ValueError, for arrays of other shapes, numbers that are not finite, fewer
    than two classes, too few rows, tables whose rows are not the same, settings that cannot be, or
    training that diverged.
    """
    from chainer_jo.relabel.estimate import training

    index = common_index(features, labels)
    errors = training.estimate_errors(*training_arrays(features, labels), Recipe(**settings), seed)
    return replace(errors, index=index)


def training_arrays(features: Any, labels: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """The arguments of `relabel` as training takes them: a `FeatureSet`, labels int32 (n,) or
    (n, m), UNKNOWN (-1) in empty places, and the names of the classes."""
    from chainer_jo.relabel.estimate.features import FeatureSet

    columns = column_names(features)
    named = isinstance(labels, tuple) and columns is not None and labels in columns.tolist()
    if np.isscalar(labels) or named:  # pandas has columns called by tuples
        if columns is None or columns.tolist().count(labels) != 1:
            raise UserError(f"labels {labels!r}: expected one column of the features' table")
        features, labels = _without(features, labels), features[labels]
    numbers = matrix("features", features)
    given, present = _labels(labels, len(numbers))
    names = np.unique(given)
    if len(names) < 2:
        raise UserError(f"labels: all are {names.tolist()[0]!r}, expected two classes or more")
    if (numbers == numbers[0]).all():
        raise UserError("features: all rows are equal, expected at least two different rows")
    codes = _encoded(given, names, present)
    return FeatureSet(numbers, label_noise.majority(codes)), codes, names


def column_names(table: Any) -> np.ndarray | None:
    """The names of the columns of a table of pandas, polars, PyArrow or their like; None for an
    array. PyArrow's ``columns`` are the columns themselves."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return None if names is None or not hasattr(table, "__array__") else np.asarray(names)


def _without(table: Any, column: Any) -> Any:
    """The other columns of a table."""
    if hasattr(table, "drop_columns"):  # PyArrow's
        return table.drop_columns(column)
    return table.drop(columns=column) if hasattr(table, "iloc") else table.drop(column)


def matrix(name: str, values: Any) -> np.ndarray:
    """Numbers (rows, columns) float64, or float32 as they are; finite in float32."""
    array, columns, kind = _array(name, values), column_names(values), type(values).__name__
    if array.dtype.kind in "cmM" or array.ndim != 2 or 0 in array.shape:
        actual = f"{array.dtype} {array.shape} of a {kind}"
        raise UserError(f"{name}: {actual}, expected dense numbers (rows, one column or more)")
    if columns is not None and columns.shape != array.shape[1:]:
        raise UserError(f"{name}: columns of a {kind} have no names, expected a DataFrame or array")
    try:
        numbers = np.asarray(array, np.float32 if array.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        numbers = np.vectorize(_or_nan, [np.float64])(array)
    if len(bad := unusable(numbers)):
        row, column = bad[0], unusable(numbers[bad[0]][:, None])[0]
        named = "" if columns is None else f", column {columns.tolist()[column]!r}"
        (value,) = array[[row], column].tolist()
        where = f"{name}{named}: row {row}"
        shown = one_line(repr(value))
        raise UserError(f"{where} has {shown}, expected finite numbers up to {LARGEST:g}")
    return numbers


def _array(name: str, values: Any) -> np.ndarray:
    """Values as an array of NumPy; their own ``__array__`` may raise anything."""
    check_masks(name, values)
    try:
        return np.asarray(values)
    except Exception as error:
        raise UserError(f"{name}: {one_line(error)}, expected an array") from None


def check_masks(name: str, values: Any) -> None:
    """Raises UserError for masked values, which other arrays would have with what is masked."""
    masked = isinstance(values, np.ma.MaskedArray) and values.ndim
    for i, row in enumerate(values if masked or isinstance(values, list | tuple) else ()):
        if np.ma.is_masked(row):
            raise UserError(f"{name}: row {i} is masked, expected a value in every row")


def _or_nan(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def _labels(values: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of n images that can be sorted, in one row, and their places: True in bool (n,), or
    (n, m) for m labels an image. A single column is one label an image."""
    table = _array("labels", values)
    if table.ndim == 2 and isinstance(values, list | tuple):
        table = np.array(values, object)  # NumPy makes text of a NaN in a list of text
    if table.ndim != 2 or table.shape[0] != n or table.shape[1] < 2:
        column = values if table.shape != (n, 1) else table[:, 0]
        return _classes("labels", column, n, "row"), np.ones(n, bool)
    with np.errstate(invalid="ignore"):  # comparing NaN sets a flag on some processors
        present = ~np.vectorize(_is_missing, [bool])(table)
    if len(empty := np.flatnonzero(~present.any(axis=1))):
        raise UserError(f"labels: row {empty[0]} has none, expected one or more")
    given = table[present].tolist() if table.dtype.kind == "O" else table[present]
    if table.dtype.kind == "f" and not present.all() and (given == given.round()).all():
        if abs(largest := max(given.tolist(), key=abs)) >= 2**53:  # neighbours are one float
            raise UserError(f"labels: {largest}, expected less than 2**53 beside NaN, or text")
        given = given.astype(np.int64)  # a missing number has made them float
    given = _classes("labels", given, len(given), "row", np.nonzero(present)[0])
    check_columns("labels", _encoded(given, np.unique(given), present))
    return given, present


def _is_missing(value: Any) -> bool:
    """True for None and NaN, which is not equal to itself; of pandas' NA it is not even known."""
    return value is None or not isinstance(value != value, bool | np.bool) or value != value


def _classes(
    name: str, values: Any, n: int, of: str, rows: Sequence[int] | np.ndarray | None = None
) -> np.ndarray:
    """Classes (n,) that can be sorted, one for each of the rows or columns; ``rows``, their numbers
    in messages, are 0 to n - 1 by default."""
    given = _array(name, values)
    rows = range(n) if rows is None else rows
    if given.shape != (n,):
        raise UserError(f"{name}: shape {given.shape}, expected ({n},), one for each {of}")
    # NumPy makes text of a NaN in a list of text, and of a number; it drops a last NUL.
    converted = given.dtype.kind in "US" or isinstance(values, list | tuple)
    originals = list(values) if converted else given.tolist()
    for i, x in zip(rows, originals, strict=True):
        if isinstance(x, Sized) and not isinstance(x, str | bytes):
            shown = one_line(repr(x))
            raise UserError(f"{name}: {of} {i} has {shown}, expected numbers, text or dates")
        if _is_missing(x):
            raise UserError(f"{name}: {of} {i} is missing (None or NaN)")
    if given.dtype.kind in "OT":  # NumPy does not find long text of its own StringDType
        given = np.array(given.tolist())
    try:
        np.unique(given)
    except TypeError as error:
        raise UserError(f"{name}: {error}, expected numbers, text or dates") from None
    first: dict[Any, Any] = {}
    for i, x, taken in zip(rows, originals, given.tolist(), strict=True):
        other = first.setdefault(taken, x)
        if other != x or (isinstance(x, str | bytes) and x != taken):
            raise UserError(
                f"{name}: {of} {i} has {x!r}, which becomes {taken!r} as {other!r} does, "
                "expected values of one type, and no text that ends with NUL"
            )
    return given


def _names(
    class_names: ClassNames | None,
    columns: np.ndarray | None,
    given: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    """Class names (width,) of the columns of numbers (n, width), each once. A column that no label
    names may be a class; where rows do not sum to 1, it may be anything."""
    classes, width = np.unique(given), numbers.shape[1]
    numbered = given.dtype.kind in "iu" and classes[0] >= 0 and classes[-1] < width
    if class_names is not None:
        names = _classes("class_names", class_names, width, "column")
    elif columns is not None and set(classes.tolist()) <= set(columns.tolist()):
        names = columns
    elif (
        columns is None
        or np.array_equal(columns, np.arange(width))
        or (numbered and not set(map(str, classes)) & set(map(str, columns)))
    ):
        names = np.arange(width) if numbered else classes
        if classes.dtype.kind == "U" and sorted(classes.tolist(), key=by_value) != classes.tolist():
            shown = max(classes.tolist(), key=by_value)
            raise UserError(
                f"pred_probs: labels with numbers such as {shown!r} have more than one order, "
                f"{EXPECTED_NAMES}"
            )
    else:
        missing = next(name for name in classes.tolist() if name not in columns)
        raise UserError(
            f"pred_probs: labels such as {missing!r} are not among the columns "
            f"{columns.tolist()}, {EXPECTED_NAMES}"
        )
    if names.shape != (width,):
        raise UserError(f"pred_probs: {width} columns for {len(names)} classes, {EXPECTED_NAMES}")
    if len(set(names.tolist())) < width:
        raise UserError(f"pred_probs: columns {names.tolist()}, expected each class once")
    others = ~np.isin(names, classes)
    if class_names is None and others.any() and (np.abs(numbers.sum(axis=1) - 1) > 0.01).any():
        shown = (names if columns is None else columns)[others].tolist()
        raise UserError(
            f"pred_probs: columns {shown} are of no label's class and rows do not sum to 1, "
            f"expected probabilities alone; or {EXPECTED_NAMES.removeprefix('expected ')}"
        )
    return names


def _encoded(given: np.ndarray, names: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Labels as indices of classes, int32, at their places; UNKNOWN (-1) elsewhere."""
    if names.dtype.kind == given.dtype.kind == "M":  # days are Python's dates, others are not
        names, given = (each.astype(np.result_type(names, given)) for each in (names, given))
    index = {name: k for k, name in enumerate(names.tolist())}
    for label in given.tolist():
        if label not in index:
            raise UserError(f"labels: {label!r} is none of the {len(names)} classes")
    codes = np.full(present.shape, UNKNOWN, np.int32)
    codes[present] = [index[label] for label in given.tolist()]
    return codes


def common_index(*tables: Any) -> Any:
    """The index of the first table that has one, as in pandas. A list has a method of that name.

    Raises UserError if another table has some of the same rows in another order: rows go by
    position.
    """
    candidates = (getattr(table, "index", None) for table in tables)
    indices = [index for index in candidates if index is not None and not callable(index)]
    indices = [index.compute() if hasattr(index, "compute") else index for index in indices]
    for other in indices[1:]:
        ours, theirs = (list(map(repr, index.tolist())) for index in (indices[0], other))
        if set(ours) & set(theirs) and ours[: len(theirs)] != theirs[: len(ours)]:
            a, b = next((a, b) for a, b in zip(ours, theirs, strict=False) if a != b)
            raise UserError(
                f"labels: {b} in their index stands where the rows' index has {a}, expected the "
                "same index, or arrays"
            )
    return indices[0] if indices else None
