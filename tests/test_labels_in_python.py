"""Labels and probabilities of the Python functions, in unusual arrays, lists and tables."""

import numpy as np
import pytest

from chainer_jo.errors import UserError
from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel

TRUE = np.repeat([0, 1, 2], 40)
GIVEN = np.where(np.arange(120) % 10, TRUE, (TRUE + 1) % 3)
FEATURES = np.eye(3, 8)[TRUE] * 3 + np.random.default_rng(0).normal(size=(120, 8)) / 2
PROBABILITIES = np.eye(3)[TRUE] * 0.7 + 0.1
NAMES = np.array(["airplane, far off", "boat in a harbour", "car"])
TEXT = np.dtypes.StringDType()


@pytest.mark.parametrize("number", [1, np.int64(1), np.float64(1.5)])
def test_text_and_numbers_in_one_list(number):
    """A number beside text is text; NumPy's own kind of truth value made it a missing label."""
    pred_probs = np.tile([[0.9, 0.1], [0.2, 0.8]], (10, 1))
    errors = find_label_errors(["a", number] * 10, pred_probs, ["a", str(number)])
    assert errors.table()["given"].tolist() == ["a", str(number)] * 10


def table(**columns):
    """Probabilities of the classes, and further columns."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(PROBABILITIES, columns=NAMES).assign(**columns)


@pytest.mark.parametrize(
    "column", [np.arange(120) % 4, np.linspace(0, 1, 120), TRUE, -np.zeros(120)]
)
def test_columns_that_are_no_probabilities_are_named(column):
    plain, other = NAMES[GIVEN], table(fold=column)
    if not column.any():  # a class that no label has
        assert len(find_label_errors(plain, other).class_names) == 4
        return
    for frame, labels, shown in (
        (other, plain, "'fold'"),
        (other.set_axis(["a", "b", "c", "d"], axis=1), GIVEN, "'d'"),
        (other.set_axis([0, 1, 2, "fold"], axis=1), GIVEN, "'fold'"),
        (other.to_numpy(), GIVEN, "3"),
    ):
        with pytest.raises(UserError, match=rf"^pred_probs: columns \[{shown}\] are of no label"):
            find_label_errors(labels, frame)
    named = find_label_errors(GIVEN, other.to_numpy(), [0, 1, 2, 3])
    assert len(named.class_names) == 4  # whoever names them means them


def test_a_class_of_text_beside_numbered_ones():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PROBABILITIES * 0.9, columns=[0, 1, 2]).assign(other=0.1)
    assert (find_label_errors(GIVEN, frame).table()["new"] == TRUE).all()


@pytest.mark.parametrize(
    "classes",
    [[3, "3", "4"], [True, "True", "x"], [1.5, "1.5", "x"], [b"a", "a", "b"], ["b", "b\0", "d"],
     ["b\0", "c", "d"], [b"b", b"b\0", b"d"], [2**53, 2**53 + 1, 0.5]],
)  # fmt: skip
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_labels_that_would_become_one_are_named(classes, kind):
    labels = [classes[k] for k in TRUE]
    labels = np.array(labels, object) if kind is np.array else kind(labels)
    for call in (
        lambda: relabel(FEATURES, labels),
        lambda: find_label_errors(labels, PROBABILITIES),
        lambda: find_label_errors(GIVEN, PROBABILITIES, classes),
    ):
        with pytest.raises(
            UserError, match="(labels: row|class_names: column) .* has .*, expected"
        ):
            call()


@pytest.mark.parametrize("values", [FEATURES, GIVEN, GIVEN.astype(float), NAMES[GIVEN]])
def test_masked_values_are_missing(values):
    masked = np.ma.array(values, mask=np.zeros(values.shape, bool))
    masked[3] = np.ma.masked
    name = "labels|y" if values.ndim == 1 else "features|pred_probs|X"
    x, y = (FEATURES, masked) if values.ndim == 1 else (masked, GIVEN)
    with pytest.raises(UserError, match="row 3 (is masked|has masked), expected"):
        relabel(*(list(each) if each is masked else each for each in (x, y)))
    for call in (
        lambda: relabel(x, y),
        lambda: find_label_errors(y, PROBABILITIES if values.ndim == 1 else x),
        lambda: RelabelClassifier().fit(x, y),
    ):
        with pytest.raises(UserError, match=f"^({name}): row 3 is (masked|missing)"):
            call()
    with pytest.raises(UserError, match="^X: row 3 is (masked|missing)"):
        fitted = RelabelClassifier().fit(FEATURES, GIVEN)
        fitted.predict(np.ma.masked_where(np.arange(960).reshape(120, 8) == 25, FEATURES))


def test_long_text_of_numpys_own_type():
    given = NAMES[GIVEN].astype(TEXT)
    for errors in (
        find_label_errors(given, PROBABILITIES),
        find_label_errors(NAMES[GIVEN], PROBABILITIES, NAMES.astype(TEXT)),
        find_label_errors(given, PROBABILITIES, NAMES),
        relabel(FEATURES, given),
        RelabelClassifier().fit(FEATURES, given).errors_,
    ):
        assert (np.asarray(errors.table()["new"]) == NAMES[TRUE]).all()


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_are_equal_in_all_units(unit):
    dates = np.array(["2024-02-29", "2025-01-01", "2026-12-31"], "M8[D]")
    errors = find_label_errors(dates[GIVEN].astype(f"M8[{unit}]"), PROBABILITIES, dates)
    assert (errors.new == TRUE).all()


def test_columns_of_two_levels_and_of_lists():
    pandas = pytest.importorskip("pandas")
    frame = table(label=NAMES[GIVEN])
    frame.columns = pandas.MultiIndex.from_product([["m"], frame.columns])
    assert (relabel(frame, ("m", "label")).new == TRUE).all()
    lists = table(numbers=[np.arange(40)] * 120)
    with pytest.raises(UserError, match="column 'numbers': row 0 has array") as caught:
        relabel(lists, GIVEN)
    assert "\n" not in str(caught.value)
