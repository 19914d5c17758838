"""`chainer_jo.relabel` from Python: arrays and DataFrames in, a table out."""

import enum
import functools
import re
import sys
import warnings

import chainer
import numpy as np
import processes
import pytest
import scipy.sparse
from processes import ROOT
from sklearn.utils.estimator_checks import check_estimator

import chainer_jo.relabel
from chainer_jo.errors import UserError
from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel
from chainer_jo.relabel.estimate import training
from chainer_jo.relabel.estimate.label_errors import COLUMNS

DOCS = ROOT / "docs" / "own-data-reference.md"
NAMES = np.array(["ant", "bee", "cat", "dog"])


@pytest.fixture(scope="module")
def blobs():
    """Features (400, 6), true labels and given ones, a fifth of them wrong."""
    rng = np.random.default_rng(0)
    true = np.arange(400) % 4
    features = np.eye(4, 6)[true] * 2 + rng.normal(0, 0.5, (400, 6))
    given = np.where(rng.random(400) < 0.2, (true + rng.integers(1, 4, 400)) % 4, true)
    return features, true, given


def probabilities(true, given):
    """Unsure by chance, and most sure of the true class."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4) / 2, len(true)) * 0.5
    p[np.arange(len(true)), true] += 0.5
    return p


def test_wrong_labels_are_found_and_mended_by_name(blobs):
    features, true, given = blobs
    errors = relabel(features.tolist(), NAMES[given].tolist(), seed=1)
    assert (NAMES[errors.new] == NAMES[true]).mean() > 0.97
    assert errors.share_wrong == pytest.approx((given != true).mean(), abs=0.04)
    columns = errors.columns()
    assert tuple(columns) == COLUMNS
    np.testing.assert_array_equal(columns["given"], NAMES[given])
    by_number = relabel(features, given, seed=1)
    np.testing.assert_array_equal(by_number.probabilities, errors.probabilities)
    assert not np.array_equal(relabel(features, given).probabilities, errors.probabilities)


@pytest.mark.parametrize("name, values", [
    ("seed", (-1, 0.5, None, "0")),
    ("epochs", (0, 2.5, "3", None)),
    ("average", (0, 1.5)),
    ("warmup_epochs", (-1, 0.5, 12)),  # as long as training: no label would ever be updated
    ("seeds", (-1, 0, 1.5)),
    ("folds", (1, 2.5)),
    ("learning_rate", (0, -1, np.nan, np.inf, "0.3", None)),
    ("weight_decay", (-1, np.nan)),
    ("alpha", (-1, np.inf)),
    ("beta", (-1, "1")),
    ("prior", ("mean", None)),
    ("rule", ("hard", ["soft"])),
])  # fmt: skip
def test_a_setting_that_cannot_be(name, values, blobs):
    for value in values:
        with pytest.raises(UserError, match=f"^{name} {re.escape(repr(value))}: expected"):
            relabel(*blobs[::2], **{name: value})


def test_the_callers_configuration_of_chainer_changes_nothing(blobs):
    features, given = blobs[0][:200], blobs[2][:200]

    def outcomes():
        yield relabel(features, given, epochs=3).probabilities
        yield RelabelClassifier().fit(features, given).predict_proba(features)

    expected = list(outcomes())
    for name, value in (("train", False), ("dtype", np.float16), ("enable_backprop", False)):
        with chainer.using_config(name, value):
            assert all(map(np.array_equal, outcomes(), expected)), name


def test_probabilities_of_any_model(blobs):
    _, true, given = blobs
    p = probabilities(true, given)
    errors = find_label_errors(given, p)
    assert (errors.new == true).mean() > 0.97 and errors.wrong.sum() >= errors.changed.sum() - 5
    order = [2, 0, 3, 1]
    shuffled = find_label_errors(NAMES[given], p[:, order], class_names=NAMES[order])
    np.testing.assert_array_equal(np.asarray(shuffled.class_names)[shuffled.new], NAMES[errors.new])
    # Classes by the labels themselves: these are not 0 to c - 1.
    np.testing.assert_array_equal(find_label_errors(given + 7, p).columns()["new"], errors.new + 7)


def test_tables_of_pandas_keep_their_index(blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    features, true, given = blobs
    index = [f"{i}.png" for i in range(400)]
    frame = pandas.DataFrame(features, index).assign(label=NAMES[given])
    table = relabel(frame, "label").table()
    gaps = frame["label"].astype("string")
    gaps.iloc[2] = pandas.NA
    with pytest.raises(ValueError, match="labels: row 2 is missing"):
        relabel(features, gaps)
    numbered = frame.rename(columns={"label": 6})
    np.testing.assert_array_equal(relabel(numbered, 6).table(), table)
    assert tuple(table.columns) == COLUMNS and list(table.index) == index
    assert (table["new"] == NAMES[true]).mean() > 0.97
    surest = table.sort_values("rank").head(20)
    assert (surest["probability_given"].diff().dropna() >= 0).all() and surest["wrong"].all()
    frame = pandas.DataFrame(probabilities(true, given)[:, ::-1], columns=NAMES[::-1])
    found = find_label_errors(pandas.Series(NAMES[given], index), frame).table()
    assert (found["new"] == NAMES[true]).mean() > 0.97 and list(found.index) == list(range(400))


def test_tables_in_different_orders_are_refused(blobs):
    """Rows go by position: labels would go to other rows, and changed ones back under their
    index."""
    pandas = pytest.importorskip("pandas", reason="extra test")
    features, _, given = blobs
    frame = pandas.DataFrame(features, [f"{i}.png" for i in range(400)])
    labels = pandas.Series(NAMES[given], frame.index).sort_values()
    with pytest.raises(ValueError, match="labels: .* in their index stands where the rows' index"):
        relabel(frame, labels)
    with pytest.raises(ValueError, match="labels: 1 in their index .* has 0, expected the same"):
        relabel(pandas.DataFrame(features)[:-1], pandas.Series(given)[1:])
    assert len(relabel(frame, labels[frame.index], epochs=3).table()) == 400


def test_without_pandas_the_table_is_a_dictionary(blobs, monkeypatch):
    _, true, given = blobs
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = find_label_errors(given, probabilities(true, given)).table()
    assert tuple(table) == COLUMNS and all(len(column) == 400 for column in table.values())


class Columns:
    """A table whose ``columns`` are the columns themselves, and which has no names of them."""

    def __init__(self, array):
        self.array, self.columns = array, list(array.T)

    def __array__(self, dtype=None, copy=None):
        return self.array


class Named(Columns):
    """A table as PyArrow has it: names apart from ``columns``."""

    column_names, drop_columns = property(lambda self: self.names), None

    def __init__(self, columns):
        super().__init__(np.stack(list(columns.values()), axis=1))
        self.names = list(columns)


@pytest.mark.parametrize("module", [None, "pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
def test_columns_of_any_table_go_by_their_names(module, blobs):
    """polars and PyArrow are no requirements: they are tested where they are installed."""
    features, true, given = blobs
    p, make = probabilities(true, given), Named
    if module is not None:
        package, name = module.split(".")
        make = getattr(pytest.importorskip(package, reason="no requirement"), name)
    table = make({NAMES[k]: p[:, k] for k in (2, 0, 3, 1)})
    found = find_label_errors(NAMES[given], table).columns()["new"]
    np.testing.assert_array_equal(found, find_label_errors(NAMES[given], p).columns()["new"])
    with pytest.raises(ValueError, match="labels such as 'eel' are not among the columns"):
        find_label_errors(np.where(given == 0, "eel", NAMES[given]), table)
    if module is None:
        return
    columns = {f"f{k}": features[:, k] for k in range(6)} | {"label": NAMES[given]}
    expected = relabel(features, NAMES[given], epochs=3).probabilities
    np.testing.assert_array_equal(relabel(make(columns), "label", epochs=3).probabilities, expected)
    gap = columns | {"f3": [*features[:7, 3], None, *features[8:, 3]]}
    with pytest.raises(ValueError, match="features, column 'f3': row 7 has nan, expected finite"):
        relabel(make(gap), "label")


def test_text_with_numbers_asks_for_the_order_of_its_columns():
    """ "10" comes before "9" as text, and after it as a number."""
    true = np.arange(660) % 11
    p = np.eye(11)[true] * 0.9 + 0.01
    with pytest.raises(ValueError, match="numbers such as '10' have more than one order, expected"):
        find_label_errors(true.astype(str), p)
    names = [str(k) for k in range(11)]
    found = find_label_errors(true.astype(str), p, class_names=names).columns()["new"]
    np.testing.assert_array_equal(found, true.astype(str))
    wrong = find_label_errors(true.astype(str), p, class_names=names[::-1])
    assert "% are wrong, expected 60 %" in wrong.doubt and "hardly" not in wrong.doubt


class Raises:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("use detach() first")


class Pet(enum.Enum):
    CAT, DOG, OWL, ANT = range(4)


@pytest.mark.parametrize("change, message", [
    (lambda x, y: (x, [[0], [0, 1]] + [[1]] * 398), "^labels: .*inhomogeneous"),
    (lambda x, y: (x, np.fromiter([(0, 1)] * 400, object)), r"^labels: row 0 has \(0, 1\), expect"),
    (lambda x, y: (x, [frozenset([1])] * 400), "^labels: row 0 has frozenset"),
    (lambda x, y: (x, [Pet.CAT, Pet.DOG] * 200), "^labels: '<' not supported .*, text or dates"),
    (lambda x, y: (x, Raises()), r"^labels: use detach\(\) first, expected an array"),
    (lambda x, y: (x, "label"), "^labels 'label': expected one column"),
    (lambda x, y: (x, 0 * y), "all are 0, expected two classes or more"),
    (lambda x, y: (0 * x, y), "features: all rows are equal"),
    (lambda x, y: (x * 1e200, y), r"row 0 has .*e.200, expected finite .* up to 1e.14"),
    (lambda x, y: (scipy.sparse.csr_array(x), y), r"^features: object \(\) of a csr_array"),
    (lambda x, y: (x + 1j, y), "^features: complex128 .*, expected dense numbers"),
    (lambda x, y: (x.astype("M8[s]"), y), r"^features: datetime64\[s\] .*, expected dense numbers"),
    (lambda x, y: (Raises(), y), r"^features: use detach\(\) first, expected an array"),
    (lambda x, y: ([*x[:7].tolist(), [*x[7][:5], "?"], *x[8:].tolist()], y),
     "^features: row 7 has '[?]'"),
    (lambda x, y: (Columns(x), y), "columns of a Columns have no names"),
])  # fmt: skip
def test_what_cannot_be_learnt_from_is_refused(change, message, blobs):
    with pytest.raises(UserError, match=message):
        relabel(*change(*blobs[::2]))


@pytest.mark.parametrize("change, message", [
    (lambda table, pd: table.drop(columns="label"), "^labels 'label': expected one column"),
    (lambda table, pd: table.assign(c=NAMES[0]), "^features, column 'c': row 0 has .*'ant'"),
    (lambda table, pd: table.assign(c=pd.Timestamp(0)), "^features, column 'c': row 0 has Time"),
    (lambda table, pd: table.assign(c=pd.array([1.0] * 399 + [None], "Float64")),
     "^features, column 'c': row 399 has <NA>"),
])  # fmt: skip
def test_a_column_and_row_without_a_number_are_named(change, message, blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    table = pandas.DataFrame(blobs[0], columns=list("abcdef")).assign(label=NAMES[blobs[2]])
    with pytest.raises(UserError, match=message):
        relabel(change(table, pandas), "label")


#: Checks of scikit-learn's that fail, with the reason, as in docs/own-data-reference.md.
FAILS = {
    "check_methods_sample_order_invariance": "float32: sums depend on the order of rows, by 1e-7",
    "check_methods_subset_invariance": "float32: sums depend on the number of rows, by 1e-7",
}


def test_scikit_learns_own_checks(monkeypatch):
    """With fewer seeds, in half the time."""
    monkeypatch.setattr(training, "Recipe", functools.partial(training.Recipe, seeds=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(RelabelClassifier(), expected_failed_checks=FAILS, on_skip=None)
    assert sum(check["status"] == "passed" for check in checks) >= 50
    text = " ".join(DOCS.read_text("utf-8").split())
    assert all(f"`{name}`" in text for name in FAILS)


@pytest.mark.parametrize("change, message", [
    (lambda p, y: (p[:, 0], y),
     "float64 .400,. of a ndarray, expected dense numbers .rows, one column or more."),
    (lambda p, y: (y, p), r"^pred_probs: int64 .400,. of a ndarray, expected dense numbers"),
    (lambda p, y: (p, y[:7]), "labels: shape .7,., expected .400,., one for each row"),
    (lambda p, y: (p * np.where(np.arange(400) == 3, np.nan, 1)[:, None], y), "row 3 has"),
    (lambda p, y: (-p, y), "pred_probs: expected numbers from 0 on"),
    (lambda p, y: (0 * p, y), "at least one positive a row"),
    (lambda p, y: (p[:, :3], NAMES[y]), "3 columns for 4 classes, expected class_names"),
    (lambda p, y: (p, NAMES[y], NAMES[[0, 1, 2, 2]]), "columns .*, expected each class once"),
    *((lambda p, y, names=names: (p, NAMES[y], names), r"class_names: shape \(\), expected \(4,\)")
      for names in (set(NAMES), dict.fromkeys(NAMES), iter(NAMES), "ant")),  # have no order
    (lambda p, y: (p, [None, *NAMES[y][1:]]), "labels: row 0 is missing"),
    (lambda p, y: (p, [*NAMES[y][:399], np.nan]), "labels: row 399 is missing"),
    (lambda p, y: ([["a", "b"]] * 400, y), "row 0 has 'a', expected finite numbers"),
    (lambda p, y: (Columns(p), NAMES[y]), "columns of a Columns have no names"),
])  # fmt: skip
def test_what_does_not_fit_is_said(change, message, blobs):
    _, true, given = blobs
    p, labels, *names = change(probabilities(true, given), given)
    with pytest.raises(ValueError, match=message):
        find_label_errors(labels, p, *names)


def test_columns_that_name_some_of_the_labels_are_not_taken_in_order(blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    _, true, given = blobs
    p = probabilities(true, given)
    for columns, y in (
        (["3", "2", "1", "0"], given), ([*NAMES[:3], "Dog"], NAMES[given]),
        ([f"p_{n}" for n in NAMES], NAMES[given]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="not among the columns .* expected class_names"):
            find_label_errors(y, pandas.DataFrame(p, columns=columns))
    for columns in (range(4), ["p0", "p1", "p2", "p3"]):
        found = find_label_errors(given, pandas.DataFrame(p, columns=columns))
        np.testing.assert_array_equal(found.new, find_label_errors(given, p).new)


def test_a_classifier_for_scikit_learn(blobs):
    """More is in scikit-learn's own checks."""
    features, true, given = blobs
    model = RelabelClassifier(seed=2).fit(features[:300], NAMES[given[:300]])
    assert model.score(features[300:], NAMES[true[300:]]) > 0.95
    assert (model.errors_.new == true[:300]).mean() > 0.95
    before = model.predict(features)
    with pytest.raises(ValueError, match="in 3 folds|expected"):
        model.fit(features[:4], ["x", "y", "z", "x"])
    with pytest.raises(UserError, match="^seed -1: expected a whole number of at least 0"):
        RelabelClassifier(seed=-1).fit(features, given)
    np.testing.assert_array_equal(model.predict(features), before)


def test_only_what_is_asked_for_is_imported():
    code = "import sys, chainer_jo.relabel\nprint(*(m for m in sys.modules if 'jo.relabel' in m))"
    done = processes.run([sys.executable, "-c", code])
    assert done.stdout.split() == ["chainer_jo.relabel"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        chainer_jo.relabel.nothing  # noqa: B018
