"""Several labels an image: all of them are evidence, in Python, in tables and on the page."""

import re

import numpy as np
import pytest
from own_images import BY_FEATURES, DARK, LIGHT, content, make, one_line, read, run, write

from chainer_jo.errors import UserError
from chainer_jo.relabel import RelabelClassifier, find_label_errors, relabel
from chainer_jo.relabel.estimate import label_noise
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import TableForm

RATES = 0.05, 0.2, 0.35
NAMES = "label,label2,label3"


@pytest.fixture(scope="module")
def people():
    """Features of three classes, probabilities of a network that is right in three of four images,
    labels of three annotators with their own error rates, and true labels."""
    rng = np.random.default_rng(0)
    true = np.arange(1500) % 3
    features = 2 * np.eye(3)[true] + rng.normal(0, 0.6, (1500, 3))
    seen = np.where(rng.random(1500) < 0.75, true, (true + 1) % 3)
    wrong = rng.random((1500, 3)) < RATES
    votes = np.where(wrong, (true[:, None] + rng.integers(1, 3, (1500, 3))) % 3, true[:, None])
    return features, 0.1 + 0.7 * np.eye(3)[seen], votes.astype(np.int32), true


def test_every_label_multiplies_by_its_likelihood_and_an_empty_place_by_nothing():
    s, transition = np.full((4, 2), 0.5), np.array([[0.9, 0.1], [0.3, 0.7]])
    votes = np.array([[1, -1, -1], [1, 1, -1], [-1, 1, 1], [0, 1, 0]])
    likely = label_noise.posterior(s, votes, transition)
    np.testing.assert_allclose(likely[:, 1] / likely[:, 0], [7, 49, 49, 7 / 9])
    many = label_noise.posterior(s, np.zeros((4, 2000), np.int32), transition)
    np.testing.assert_allclose(many, [[1, 0]] * 4, atol=1e-12)


def test_empty_columns_and_the_order_of_columns_change_nothing(people):
    _, probabilities, votes, _ = people
    wider = np.insert(votes[:, ::-1], 1, -1, axis=1)
    found = [label_noise.explanations(probabilities, labels) for labels in (votes, wider)]
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_error_rates_by_column_and_better_labels_than_by_the_majority(people):
    _, probabilities, votes, true = people
    errors = find_label_errors(votes, probabilities)
    np.testing.assert_allclose(errors.share_wrong_by_column, RATES, atol=0.03)
    alone = find_label_errors(label_noise.majority(votes), probabilities)
    right = [(labels == true).mean() for labels in (errors.new, alone.new, alone.given)]
    assert right[0] > max(right[1:]) + 0.02 and not errors.doubt
    common = label_noise.posterior(errors.predicted, votes, errors.transition)
    assert right[0] > (common.argmax(axis=1) == true).mean(), "the columns differ"


def test_the_network_decides_ties_of_the_majority():
    votes = np.array([[0, 1, 1], [0, 1, -1], [1, 0, -1], [2, -1, -1], [0, 1, 2]])
    probabilities = np.array([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5]])[[0, 0, 1, 0, 1]]
    assert label_noise.majority(votes, probabilities).tolist() == [1, 0, 1, 2, 2]
    drawn = label_noise.majority(np.tile([[0, 1]], (400, 1)))
    assert 150 < drawn.sum() < 250, "before training, neither column is preferred"


def test_one_column_is_one_label_exactly(people):
    features, probabilities, votes, _ = people
    given, column = votes[:, 1], votes[:, 1:2]
    pairs = [
        (relabel(features, given, epochs=4), relabel(features, column, epochs=4)),
        (find_label_errors(given, probabilities), find_label_errors(column, probabilities)),
    ]
    for ours, theirs in pairs:
        for name in ("given", "probabilities", "predicted", "wrong", "transition"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_networks_learn_the_majority_and_all_labels_judge(people):
    features, _, votes, true = people
    three = np.array(["a", "b", "c"])[votes]
    model = RelabelClassifier().fit(features, three)
    errors = model.errors_
    np.testing.assert_array_equal(errors.votes, votes)
    assert (errors.new == true).mean() > (errors.given == true).mean() + 0.02
    assert set(model.predict(features)) == {"a", "b", "c"}
    same = relabel(features, three)
    np.testing.assert_array_equal(same.probabilities, errors.probabilities)


@pytest.mark.parametrize("kind", ["list", "array", "float", "pandas"])
def test_forms_of_empty_places(people, kind):
    _, probabilities, votes, _ = people
    expected = np.where(np.arange(4500).reshape(-1, 3) % 3 == 2, -1, votes)
    empty = (None, np.nan)
    labels = [["abc"[k] if k >= 0 else empty[i % 2] for k in r] for i, r in enumerate(expected)]
    if kind == "pandas":
        labels = pytest.importorskip("pandas").DataFrame(labels, columns=["x", "y", "z"])
    elif kind == "array":
        labels = np.array(labels, object)
    elif kind == "float":
        labels = np.where(expected < 0, np.nan, expected)
    errors = find_label_errors(labels, probabilities)
    np.testing.assert_array_equal(errors.votes, expected)
    assert errors.class_names.dtype.kind == ("i" if kind == "float" else "U")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda y: np.where(np.arange(1500)[:, None] == 7, None, y), "^labels: row 7 has none, "),
        (lambda y: y[:-1], r"^labels: shape \(1499, 3\), expected \(1500,\)"),
        (lambda y: y[:, :, None], r"^labels: shape \(1500, 3, 1\), expected"),
        (lambda y: y * 0, "^labels: all are 0, expected two classes or more"),
        (lambda y: [["a"]] * 1499 + [[np.nan]], "^labels: row 1499 is missing"),
        (lambda y: np.insert(y + 1e300, 3, np.nan, axis=1), "^labels: 1e.300, expected less"),
        (lambda y: np.insert(y - 1e300, 3, np.nan, axis=1), "^labels: -1e.300, expected less"),
        (lambda y: [["1", 0] if i == 5 else [0, 1] for i in range(1500)], "^labels: row 5 has '1'"),
    ],
)
def test_labels_that_cannot_be_used_are_one_line(people, change, expected):
    with pytest.raises(UserError, match=expected):
        relabel(people[0], change(people[2]))


@pytest.mark.parametrize("form", [
    np.asarray, np.int32, lambda y: y > 0, np.ndarray.tolist, lambda y: 1 - y, lambda y: 2 * y - 1,
    lambda y: np.where(np.arange(len(y))[:, None] == 7, [np.nan, 1, np.nan], y),
    lambda y: np.array(["no", "yes"])[y.astype(int)], lambda y: np.c_[y[:, 0], 1 - y[:, 0]],
    lambda y: pytest.importorskip("pandas").DataFrame(y),
])  # fmt: skip
def test_one_hot_labels_are_not_those_of_people(people, form):
    features, probabilities, _, true = people
    labels = form(np.eye(3)[true])
    for find, other in (
        (relabel, features), (RelabelClassifier().fit, features),
        (lambda p, y: find_label_errors(y, p), probabilities),
    ):  # fmt: skip
        with pytest.raises(UserError, match="^labels: a column for each class"):
            find(other, labels)


def test_columns_of_two_questions_are_refused_and_of_people_without_common_images_are_not(people):
    features, probabilities, _, true = people
    colour, shape = np.array(["red", "blue", "red"])[true], np.array(["a", "b"])[true % 2]
    with pytest.raises(UserError, match="^labels: no two columns share a class"):
        relabel(features, np.c_[colour, shape])
    apart = [[name, None] if name == "red" else [None, name] for name in colour]
    errors = find_label_errors(apart, probabilities[:, :2])
    np.testing.assert_array_equal(errors.given, colour == "red")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The set with three label columns: the first has five errors, the others none; the last two
    rows have one label each."""
    root = make(tmp_path_factory.mktemp("several"))
    true = [row["label"] for row in read(root / "true.csv")]
    labels = [row["label"] for row in read(root / "labels.csv")]
    rows = [*zip([row["path"] for row in read(root / "true.csv")], labels, true, true, strict=True)]
    rows[-2:] = [(*rows[-2][:2], "", " "), (rows[-1][0], "", true[-1], "")]
    hot = [[int(i % 3 == k) for k in range(3)] for i in range(len(rows))]
    table = [(path, *more, *row) for (path, *row), more in zip(rows, hot, strict=True)]
    write(root / "three.csv", [("path", "is0", "is1", "is2", *NAMES.split(",")), *table])
    return root


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), f"columns {NAMES}, expected --label-columns {NAMES} for several labels an image, or"),
        (("--label-columns", "label,label2,none"), "'label' and 'label2' and 'none'"),
        (("--label-columns", "label,Label"), "'label,Label': expected different names"),
        (("--label-columns", NAMES, "--label-column", "label"), "--label-column: expected without"),
        (("--label-columns", "label2,label3"), "no label: line 60"),
        (("--label-columns", "label,PATH"), "one column for paths and labels, expected two"),
        (("--label-columns", "is0,is1,is2"), "is0,is1,is2: a column for each class (one-hot)"),
        (("--label-columns", "label,is0"), "label,is0: no two columns share a class, expected"),
    ],
)
def test_columns_that_cannot_be_used_are_one_line(flags, said, table, tmp_path, capsys):
    assert run("relabel", table / "three.csv", "--out", tmp_path / "out", *flags) == 2
    assert said in one_line(capsys)


def test_the_command_on_three_columns(table, tmp_path, capsys):
    found = label_table.read(
        table / "three.csv", TableForm.of(None, None, None, ("Label", "label2", "label3"))
    )
    assert [votes[-2:] for votes in found.votes.values()] == [[DARK, ""], ["", LIGHT], ["", ""]]
    out, applied = tmp_path / "out", tmp_path / "set"
    flags = ("--features", table / "features.npz", "--out", out, "--label-columns", NAMES)
    flags = (*flags, *BY_FEATURES)
    words = ("--apply", applied, "--despite-doubt")
    assert run("relabel", table / "three.csv", *flags, *words) == 0
    said = capsys.readouterr().out
    assert said.count("of the majority labels are wrong") == 1
    shares = re.findall(r"\| label2? +\| +\d+ +\| ([\d.]+) %", said)
    label, label2 = map(float, shares)
    assert label == pytest.approx(100 * 5 / 59, abs=2) and label2 < 2
    rows, true = read(out / "labels.csv"), [row["label"] for row in read(table / "true.csv")]
    assert [row["given"] for row in rows] == true, "the majority"
    assert [row["new"] for row in rows[1:]] == true[1:]
    assert (rows[1]["label"], rows[1]["label2"]) == (DARK, LIGHT) and rows[-1]["label"] == ""
    written = read(applied / "labels.csv")
    assert [row["label"] for row in written] == [row["new"] for row in rows]
    assert written[1]["given:label"] == DARK and written[1]["label2"] == LIGHT
    page, by_path = content(out / "report.html"), {row["path"]: row for row in rows}
    assert len(page["rows"]) >= 50
    for path, given, *_, votes in page["rows"]:
        names = [page["classes"][k] if k >= 0 else "" for k in (given, *votes)]
        row = by_path[path]
        assert names == [row["given"], *(row[name].strip() for name in NAMES.split(","))]
    text = (out / "report.html").read_text(encoding="utf-8")
    assert "are the majority of label, label2, label3;" in text and "Labels by column" in text
    # Another label of an image is other data, also where the majority stays.
    lines = (table / "three.csv").read_text("utf-8").replace(f"{LIGHT},{LIGHT}\n", f"{LIGHT},\n")
    (table / "other.csv").write_text(lines, "utf-8")
    assert run("relabel", table / "other.csv", *flags) == 2
    assert "expected the same images and labels" in one_line(capsys)
