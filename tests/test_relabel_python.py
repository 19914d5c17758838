"""`chainer_jo.relabel` from Python: arrays and DataFrames in, a table out."""

import re
import sys

import numpy as np
import processes
import pytest
from processes import ROOT
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import chainer_jo.relabel
from chainer_jo.errors import UserError
from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel
from chainer_jo.relabel.label_errors import COLUMNS

DOCS = ROOT / "docs" / "own-data.md"
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


def test_a_seed_that_cannot_be(blobs):
    with pytest.raises(UserError, match="seed -1: expected at least 0"):
        relabel(*blobs[::2], seed=-1)
    with pytest.raises(UserError, match="seed -1: expected at least 0"):
        RelabelClassifier(seed=-1).fit(*blobs[::2])


def test_probabilities_of_any_model(blobs):
    _, true, given = blobs
    p = probabilities(true, given)
    errors = find_label_errors(p, given)
    assert (errors.new == true).mean() > 0.97 and errors.wrong.sum() >= errors.changed.sum() - 5
    order = [2, 0, 3, 1]
    shuffled = find_label_errors(p[:, order], NAMES[given], class_names=NAMES[order])
    np.testing.assert_array_equal(np.asarray(shuffled.class_names)[shuffled.new], NAMES[errors.new])
    # Classes by the labels themselves: these are not 0 to c - 1.
    np.testing.assert_array_equal(find_label_errors(p, given + 7).columns()["new"], errors.new + 7)


def test_tables_of_pandas_keep_their_index(blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    features, true, given = blobs
    index = [f"{i}.png" for i in range(400)]
    frame = pandas.DataFrame(features, index).assign(label=NAMES[given])
    table = relabel(frame, "label").table()
    gaps = frame["label"].astype("string")
    gaps.iloc[2] = pandas.NA
    with pytest.raises(ValueError, match="labels: row 2 has none"):
        relabel(features, gaps)
    numbered = frame.rename(columns={"label": 6})
    np.testing.assert_array_equal(relabel(numbered, 6).table(), table)
    assert tuple(table.columns) == COLUMNS and list(table.index) == index
    assert (table["new"] == NAMES[true]).mean() > 0.97
    surest = table.sort_values("rank").head(20)
    assert (surest["probability_given"].diff().dropna() >= 0).all() and surest["wrong"].all()
    frame = pandas.DataFrame(probabilities(true, given)[:, ::-1], columns=NAMES[::-1])
    found = find_label_errors(frame, pandas.Series(NAMES[given], index)).table()
    assert (found["new"] == NAMES[true]).mean() > 0.97 and list(found.index) == list(range(400))


def test_tables_in_different_orders_are_refused(blobs):
    """Rows go by position: labels would go to other rows, and changed ones back under their
    index."""
    pandas = pytest.importorskip("pandas", reason="extra test")
    features, _, given = blobs
    frame = pandas.DataFrame(features, [f"{i}.png" for i in range(400)])
    labels = pandas.Series(NAMES[given], frame.index).sort_values()
    with pytest.raises(ValueError, match="labels: their index is that of the rows in another"):
        relabel(frame, labels)
    assert len(relabel(frame, labels[frame.index]).table()) == 400


def test_without_pandas_the_table_is_a_dictionary(blobs, monkeypatch):
    _, true, given = blobs
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = find_label_errors(probabilities(true, given), given).table()
    assert tuple(table) == COLUMNS and all(len(column) == 400 for column in table.values())


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p, y: (p[:, 0], y), "shape .400,., expected .rows, one column or more."),
        (lambda p, y: (p, y[:7]), "labels: shape .7,., expected .400,., one for each row"),
        (lambda p, y: (p * np.where(np.arange(400) == 3, np.nan, 1)[:, None], y), "row 3 has"),
        (lambda p, y: (-p, y), "expected no negative ones"),
        (lambda p, y: (0 * p, y), "in each row one that is not"),
        (lambda p, y: (p[:, :3], NAMES[y]), "3 columns for 4 classes, expected class_names"),
        (lambda p, y: (p, NAMES[y], NAMES[[0, 1, 2, 2]]), "labels: 'dog' is none of the"),
        (lambda p, y: (p, [None, *NAMES[y][1:]]), "labels: row 0 has none"),
        (lambda p, y: (p, [*NAMES[y][:399], np.nan]), "labels: row 399 has none"),
        (lambda p, y: ([["a", "b"]] * 400, y), "expected numbers"),
    ],
)
def test_what_does_not_fit_is_said(change, message, blobs):
    _, true, given = blobs
    with pytest.raises(ValueError, match=message):
        find_label_errors(*change(probabilities(true, given), given))


def test_features_that_cannot_be_learnt_from_are_refused(blobs):
    features, _, given = blobs
    with pytest.raises(ValueError, match="all are 1, expected two classes or more"):
        relabel(features, np.ones(400, int))
    with pytest.raises(ValueError, match="the same in all rows"):
        relabel(np.ones((400, 3)), given)
    with pytest.raises(ValueError, match="labels 'label': expected a column"):
        pandas = pytest.importorskip("pandas", reason="extra test")
        relabel(pandas.DataFrame(features), "label")
    with pytest.raises(ValueError, match="features, column 'name': .*, expected numbers"):
        relabel(pandas.DataFrame(features).assign(name=NAMES[given], label=given), "label")
    wrong = {"epochs": 0, "average": 0, "seeds": -1, "prior": "mean", "rule": "hard"}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=f"^{name} '?{value}'?: expected"):
            relabel(features, given, **{name: value})
    with pytest.raises(ValueError, match="row 0 has numbers that are not finite, or beyond 1e.14"):
        relabel(features * 1e200, given)


def test_columns_that_name_some_of_the_labels_are_not_taken_in_order(blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    _, true, given = blobs
    p = probabilities(true, given)
    for columns, y in ((["3", "2", "1", "0"], given), ([*NAMES[:3], "Dog"], NAMES[given])):
        with pytest.raises(ValueError, match="among the columns .* expected class_names"):
            find_label_errors(pandas.DataFrame(p, columns=columns), y)
    with pytest.raises(ValueError, match=f"such as '{min(NAMES)}' are not among the columns"):
        find_label_errors(pandas.DataFrame(p, columns=[f"p_{n}" for n in NAMES]), NAMES[given])
    same = find_label_errors(p, given).new
    for columns in (range(4), ["p0", "p1", "p2", "p3"]):
        found = find_label_errors(pandas.DataFrame(p, columns=columns), given)
        np.testing.assert_array_equal(found.new, same)


def test_a_classifier_keeps_to_what_it_was_fitted_to(blobs):
    pandas = pytest.importorskip("pandas", reason="extra test")
    features, true, _ = blobs
    names = list("abcdef")
    model = RelabelClassifier().fit(pandas.DataFrame(features, columns=names), NAMES[true])
    before = model.predict(pandas.DataFrame(features, columns=names))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pandas.DataFrame(features, columns=names)[names[::-1]])
    with pytest.raises(ValueError, match="in 3 folds|expected"):
        model.fit(features[:4], ["x", "y", "z", "x"])
    after = model.predict(pandas.DataFrame(features, columns=names))
    np.testing.assert_array_equal(after, before)


def test_a_classifier_for_scikit_learn(blobs):
    features, true, given = blobs
    model = RelabelClassifier(seed=2)
    assert clone(model).get_params() == {"seed": 2}
    assert cross_val_score(model, features, true, cv=2).min() > 0.9
    model.fit(features[:300], NAMES[given[:300]])
    assert model.score(features[300:], NAMES[true[300:]]) > 0.95
    np.testing.assert_allclose(model.predict_proba(features).sum(axis=1), 1, rtol=1e-5)
    assert (model.errors_.new == true[:300]).mean() > 0.95
    with pytest.raises(ValueError, match="X: 2 columns, expected 6 as in training"):
        model.predict(features[:, :2])


def test_the_lines_of_the_docs(tmp_path):
    """As they stand there, in a process of their own."""
    (lines,) = re.findall(r"## In Python\n.*?```python\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    assert len(lines.splitlines()) <= 12
    lines += "assert (labels == true).mean() > 0.97\n"
    done = processes.run([sys.executable, "-c", lines], cwd=tmp_path)
    assert done.stdout.startswith("20.")


def test_only_what_is_asked_for_is_imported():
    code = "import sys, chainer_jo.relabel\nprint(*(m for m in sys.modules if 'jo.relabel' in m))"
    done = processes.run([sys.executable, "-c", code])
    assert done.stdout.split() == ["chainer_jo.relabel"]
    assert set(chainer_jo.relabel.__all__) <= set(dir(chainer_jo.relabel))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        chainer_jo.relabel.nothing  # noqa: B018
