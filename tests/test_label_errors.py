"""From given labels to wrong and new ones: the decision, and the training behind it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.errors import UserError
from chainer_jo.method import noise
from chainer_jo.relabel.estimate import label_noise, training
from chainer_jo.relabel.estimate.features import FeatureSet
from chainer_jo.relabel.estimate.folds import _near_pairs, folds, near_duplicates
from chainer_jo.relabel.estimate.label_errors import (
    COLUMNS,
    ERRORS_OF_LABELS,
    LabelErrors,
    best_threshold,
    find_label_errors,
)
from chainer_jo.relabel.estimate.posterior_labels import prior_of
from chainer_jo.relabel.estimate.training import Recipe

C = 4
PAIRS = {0: 1, 2: 3}


def blobs(n=1200, seed=0, spread=0.6):
    """Features around one corner per class, (n, 6), and true labels."""
    rng = np.random.default_rng(seed)
    true = (np.arange(n) % C).astype(np.int32)
    features = np.eye(C, 6)[true] * 2 + rng.normal(0, spread, (n, 6)) + 5
    return features.astype(np.float32), true


def given_labels(true, kind="asymmetric", rate=0.4, seed=1):
    rng = np.random.default_rng(seed)
    if kind == "symmetric":
        return noise.symmetric(true, rate, C, rng)
    return noise.asymmetric(true, rate, PAIRS, rng)


def noisy(n=1200, kind="asymmetric", rate=0.4, spread=0.6):
    """Features, given labels and true labels."""
    features, true = blobs(n, spread=spread)
    given = given_labels(true, kind, rate)
    return FeatureSet(features, given), given, true


def errors_of(data, given, recipe=None):
    return find_label_errors(given, training.out_of_fold(data, given, C, recipe or Recipe(), 0))


def f1(called, bad):
    return 2 * (called & bad).sum() / (called.sum() + bad.sum())


@pytest.mark.parametrize("seed", range(5))
def test_threshold_is_the_best_of_all(seed):
    wrong = np.random.default_rng(seed).beta(0.3, 0.8, 200)

    def expected(threshold):
        called = wrong >= threshold
        return 2 * wrong[called].sum() / (called.sum() + wrong.sum())

    best = max(expected(threshold) for threshold in wrong)
    assert expected(best_threshold(wrong)) == pytest.approx(best)
    assert best_threshold(np.full(1000, 1e-15)) == 1, "nothing is wrong where nothing can be"


def test_new_labels_are_the_mean_over_both_explanations():
    data, given, _ = noisy()
    s = training.out_of_fold(data, given, C, Recipe(), 0).astype(np.float64)
    s /= s.sum(axis=1, keepdims=True)
    errors, pairs = find_label_errors(given, s), label_noise.explanations(s, given)
    first, second = (label_noise.posterior(p, given, t) for p, t in pairs)
    expected = (1 - ERRORS_OF_LABELS) * first + ERRORS_OF_LABELS * second
    np.testing.assert_allclose(errors.probabilities, expected)
    np.testing.assert_allclose(errors.predicted, pairs[0][0])
    np.testing.assert_allclose(errors.transition, pairs[0][1])


def test_correct_labels_are_kept():
    data, true, _ = noisy(spread=0.9, rate=0)
    errors = errors_of(data, true)
    assert (errors.network == true).mean() < 0.9
    assert errors.changed.mean() < 0.01 and errors.share_wrong < 0.03 and errors.doubt


def test_the_second_step_divides_the_learning_rate_after_each_third(monkeypatch):
    """Of cross entropy alone."""
    rates = []

    def run(trainer, usual=training._run):
        objective = trainer.updater.model.objective
        assert (objective.alpha, objective.beta) == (0, 0)
        note = lambda t: rates.append(t.updater.get_optimizer("main").lr)  # noqa: E731
        trainer.extend(note, name="note", trigger=(1, "epoch"), priority=-1)
        usual(trainer)

    monkeypatch.setattr(training, "_run", run)
    features, true = blobs()
    labels = np.eye(C, dtype=np.float32)[true]
    training.second_step(FeatureSet(features, true), labels, Recipe(epochs=6, learning_rate=0.3), 0)
    np.testing.assert_allclose(rates, [0.3, 0.03, 0.03, 0.003, 0.003, 0.003])


def test_labels_are_updated_after_the_warm_up_and_the_last_are_averaged(monkeypatch):
    """The prior is the mean label."""
    epochs, predicted = {}, []

    def run(trainer, usual=training._run):
        store, objective = trainer.updater.labels, trainer.updater.model.objective

        def note(trainer):
            changed = not np.isin(store.soft_labels, (0, 1)).all()
            epochs[trainer.updater.epoch] = changed, len(predicted)
            np.testing.assert_array_equal(objective.prior, prior_of(store.soft_labels))

        trainer.extend(note, name="note", trigger=(1, "epoch"), priority=-1)
        usual(trainer)

    def predict(*arguments, usual=training.predict):
        predicted.append(usual(*arguments))
        return predicted[-1]

    monkeypatch.setattr(training, "_run", run)
    monkeypatch.setattr(training, "predict", predict)
    features, true = blobs(240)
    recipe = Recipe(epochs=5, warmup_epochs=2, average=2, rule="soft", seeds=1)
    training.out_of_fold(FeatureSet(features, true), true, C, recipe, 0)
    assert epochs == {1: (False, 0), 2: (False, 0), 3: (True, 0), 4: (True, 1), 5: (True, 2)}
    prior = prior_of(np.array([[0.9, 0.1, 0], [0.5, 0.5, 0]]))
    np.testing.assert_allclose(prior, [0.7, 0.3, 0], atol=2e-3)
    assert prior.min() > 0 and prior.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "kind,rate", [("symmetric", 0.4), ("asymmetric", 0.2), ("asymmetric", 0.4)]
)
def test_errors_are_found_and_mended(kind, rate):
    data, given, true = noisy(kind=kind, rate=rate)
    errors = errors_of(data, given)
    before = (given == true).mean()
    assert (errors.new == true).mean() > before + 0.6 * (1 - before)
    assert f1(errors.wrong, given != true) > 0.8
    assert errors.probability_given.shape == given.shape
    np.testing.assert_array_equal(errors.changed, errors.new != given)
    assert errors.share_wrong == pytest.approx((given != true).mean(), abs=0.03)
    by_class = [(true[given == k] != k).mean() for k in range(C)]
    np.testing.assert_allclose(errors.share_wrong_by_class, by_class, atol=0.06)
    assert sorted(errors.rank) == list(range(1, len(true) + 1))
    surest = errors.rank <= 100
    assert errors.probability_given[surest].max() <= errors.probability_given[~surest].min()
    assert (errors.network == true).mean() > 0.9
    expected = noise.transition_matrix(rate, C, PAIRS if kind == "asymmetric" else None)
    np.testing.assert_allclose(errors.transition, expected, atol=0.12)


@pytest.mark.parametrize("images,spread,rate,expected", [
    (100, 0.6, 0.3, "^The new labels may .* 100 images of 4 classes, expected 160"),
    (800, 1e3, 0.3, "^The new labels may .* network predicts .* hardly more"),
    (800, 3.0, 0.3, "^The new labels may .* expected accuracy of a network .* is [345]. %, "
        "expected"),
    (800, 1.2, 0.0, r"^The new labels may .* estimated [0-4]\.. % are wrong, less than"),
    (800, 0.6, 0.3, "^$"),
])  # fmt: skip
def test_doubt(images, spread, rate, expected):
    errors = errors_of(*noisy(images, "symmetric", rate, spread)[:2])
    assert re.search(expected, errors.doubt), errors.doubt


def judged(images, wrong_by_class):
    """Images of so many of each class, for which the network gives the given class 0.9; the new
    label of so large a share of them is the first class."""
    given = np.repeat(np.arange(len(images)), images)
    predicted = np.full((len(given), len(images)), 0.1 / (len(images) - 1))
    predicted[np.arange(len(given)), given] = 0.9
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in images])
    new = np.eye(len(images))[np.where(place < np.asarray(wrong_by_class)[given], 0, given)]
    names = [f"class {k}" for k in range(len(images))]
    return LabelErrors(names, given, new, predicted, None, np.eye(len(images)))


def test_the_columns_of_the_table_are_computed_once():
    """The report asks for the numbers of one image at a time."""
    errors = find_label_errors(np.arange(300) % 2, judged([150] * 2, [0, 0.08]).predicted)
    for name in COLUMNS:
        assert getattr(errors, name) is getattr(errors, name), name


@pytest.mark.parametrize("images, wrong_by_class, said", [
    # The fewer images, the more labels have to be wrong.
    ([150] * 2, [0, 0.08], "4.0 % are wrong, less than 0.5 times the network's expected error of "
        "10.0 %"),
    ([1000] * 2, [0, 0.05], ""),
    ([1000] * 2, [0, 0.03], "1.5 % are wrong, less than 0.2 times"),
    ([100, 1000, 1000], [0, 0.7, 0.7], "67 % are wrong"),
    ([100, 1000, 1000], [0, 0.6, 0.6], ""),
    ([600, 600, 50], [0, 0.1, 0.9], "hardly any image labelled class 2 keeps its label."),
    ([600, 600, 50], [0, 0.1, 0.7], ""),
])  # fmt: skip
def test_doubt_by_the_shares_of_wrong_labels(images, wrong_by_class, said):
    found = judged(images, wrong_by_class).doubt
    assert said in found and bool(said) == bool(found)


def test_what_is_no_evidence_changes_no_doubt():
    """Small probabilities of other images keep no class, empty columns have no correct labels, and
    copies are predicted no more surely than one image."""
    found = judged([600, 600, 10], [0, 0.2, 1])
    tails = 0.98 * found.probabilities + 0.02 * np.eye(3)[2]
    assert "labelled class 2 keeps" in replace(found, probabilities=tails).doubt
    found = judged([1000] * 2, [0, 0.1])
    votes = np.stack([found.given, *[np.full(2000, UNKNOWN)] * 3], axis=1)
    assert found.doubt == replace(found, votes=votes).doubt == ""
    given, right = np.repeat(np.arange(200) % 2, 6), np.repeat(np.arange(200) < 114, 6)
    guessed = np.eye(2)[np.where(right, given, 1 - given)]
    found = LabelErrors("ab", given, guessed, 0.8 * guessed + 0.1, None, np.eye(2))
    copies = np.arange(1200).reshape(200, 6)
    assert not found.doubt and "hardly more" in replace(found, duplicates=copies).doubt


def test_labels_of_which_most_are_exchanged_are_foretold_through_the_noise():
    """Two classes change places three times in five: the network is right, and so is the noise."""
    true = np.repeat([0, 1, 2], [500, 500, 100])
    given = np.concatenate(
        [np.repeat([1, 0], [300, 200]), np.repeat([0, 1], [300, 200]), true[1000:]]
    )
    predicted, transition = np.full((1100, 3), 0.05), np.eye(3)
    predicted[np.arange(1100), true] = 0.9
    transition[:2, :2] = [[0.4, 0.6], [0.6, 0.4]]
    assert LabelErrors("abc", given, np.eye(3)[true], predicted, None, transition).doubt == ""


def test_a_rare_class_borrows_from_the_average():
    """Two images in a hundred are of the third class, and the network hardly knows it."""
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=(600, 3)) - [0, 0, 6]
    s = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = (s.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    given = noise.symmetric(true.astype(np.int32), 0.3, 3, rng)
    alone = label_noise.estimate_transition(s, given)
    shared = label_noise.explanations(s, given)[0][1]
    assert abs(shared[2, 2] - 0.8) < abs(alone[2, 2] - 0.8)
    np.testing.assert_allclose(shared.sum(axis=1), 1)


def test_given_labels_as_evidence_help_against_asymmetric_noise():
    data, given, true = noisy(spread=0.9)
    posterior, soft = (errors_of(data, given, Recipe(rule=r)).new for r in ("posterior", "soft"))
    assert (posterior == true).mean() > (soft == true).mean()


@pytest.mark.parametrize("rule", ["posterior", "soft"])
def test_networks_side_by_side_are_as_one_by_one(rule, monkeypatch, capsys):
    recipe = Recipe(epochs=4, warmup_epochs=1, average=2, rule=rule, seeds=2)
    what = *noisy(240)[:2], C, recipe, 3
    together = training.out_of_fold(*what, shown=True)
    assert "Training: 4 of 4 epochs" in capsys.readouterr().err
    monkeypatch.setattr(training, "LARGEST_LABELS", 1)
    each = training.out_of_fold(*what)
    np.testing.assert_allclose(together, each, atol=1e-4)


def test_no_image_is_judged_by_a_network_that_saw_its_label():
    """The smaller training set has an image twice."""
    data, given, _ = noisy(241)
    recipe = Recipe(epochs=4, warmup_epochs=1, average=2, seeds=1)
    found = training.out_of_fold(data, given, C, recipe, 3)
    fold = folds(given, recipe.folds, (3, 0))
    assert np.bincount(fold).tolist() == [81, 80, 80]
    rows, unseen = np.resize(np.flatnonzero(fold), 161), np.flatnonzero(fold == 0)
    expected = training.first_step(data, rows, given[rows], unseen, C, recipe, 3)
    np.testing.assert_allclose(found[unseen], expected, atol=1e-4)


def test_it_is_the_mean_over_seeds_with_folds_of_their_own():
    data, given, _ = noisy(120)
    two, one = (
        training.out_of_fold(data, given, C, Recipe(epochs=3, warmup_epochs=1, seeds=k), 5)
        for k in (2, 1)
    )
    other = 2 * two - one  # what the second seed says by itself
    assert not np.array_equal(folds(given, 3, (5, 0)), folds(given, 3, (5, 1)))
    np.testing.assert_allclose(other.sum(axis=1), 1, atol=1e-4)
    assert other.min() > -1e-5 and np.abs(other - one).max() > 0.01
    assert Recipe().number_of_seeds(999) == 10 and Recipe().number_of_seeds(1000) == 3


def test_images_that_are_the_same_are_judged_by_the_same_network():
    features, _ = blobs(600)
    rng = np.random.default_rng(0)
    features[[100, 500]] = features[7]
    features[300] = features[8] + rng.normal(0, 0.01, 6)  # the same in another quality
    groups = near_duplicates(features)
    assert [group.tolist() for group in groups] == [[7, 100, 500], [8, 300]]
    given = np.arange(600) % C
    fold = folds(given, 3, 0, groups)
    assert len(set(fold[[7, 100, 500]])) == len(set(fold[[8, 300]])) == 1
    assert np.ptp(np.bincount(fold)) <= 4
    errors = training.estimate_errors(
        FeatureSet(features, given), given, "abcd", Recipe(epochs=2, warmup_epochs=1), 0
    )
    assert [group.tolist() for group in errors.duplicates] == [[7, 100, 500], [8, 300]]


@pytest.mark.parametrize("dimensions", [3, 20, 300])
def test_near_duplicates_are_those_of_all_pairs(dimensions):
    """Copies of half the images, next to none up to the limit apart and beyond it."""
    rng = np.random.default_rng(dimensions)
    features = rng.normal(0, 1, (200, dimensions))
    moved = rng.normal(0, 1, (100, dimensions))
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    near = 0.3 * np.median(np.partition(cdist(features, features), 5)[:, 5])
    features[100:] = features[:100] + near * np.linspace(0.01, 1, 100)[:, None] * moved
    distances = cdist(features, features)
    usual, far = np.median(np.partition(distances, (5, 25))[:, [5, 25]], axis=0)
    limit = 0.2 * (far if far > 3 * usual else usual)
    group = connected_components(csr_array(distances < limit))[1]
    expected = [np.flatnonzero(group == k).tolist() for k in dict.fromkeys(group.tolist())]
    found = near_duplicates(features.astype(np.float32))
    assert [g.tolist() for g in found] == [g for g in expected if 2 <= len(g) <= 10]
    assert 10 < len(found) < 100


@pytest.mark.parametrize("images", [2, 10])
@pytest.mark.parametrize("dimensions", [6, 300])
def test_copies_of_every_image_are_found(dimensions, images):
    """As many ``images`` are the same, as in a burst of photographs."""
    rng = np.random.default_rng(0)
    features = np.tile(rng.normal(0, 1, (1000, dimensions)), (images, 1))
    groups = near_duplicates((features + rng.normal(0, 0.01, features.shape)).astype(np.float32))
    assert [g.tolist() for g in groups] == [[*range(i, 1000 * images, 1000)] for i in range(1000)]


@pytest.mark.parametrize("dimensions", [6, 300])
def test_crowds_have_no_list_of_all_pairs(dimensions):
    """Empty frames of cameras, say: their pairs would fill the memory. A crowd of more than a
    twentieth of the images is no group of copies."""
    rng = np.random.default_rng(0)
    features = rng.normal(0, 1, (2000, dimensions)).astype(np.float32)
    for start, size in ((0, 900), (900, 80), (980, 80)):
        crowd = rng.normal(0, 1e-3, (size, dimensions)).astype(np.float32)
        features[start : start + size] = features[start] + crowd
    features[1900] = features[1800] + np.float32(1e-3)
    groups = [group.tolist() for group in near_duplicates(features)]
    assert groups == [[*range(900, 980)], [*range(980, 1060)], [1800, 1900]]
    assert all(len(pairs) < 3 * 1061 for pairs in _near_pairs(features, np.arange(2000)))
    triples = np.repeat(features[1600:1603], 3, axis=0) + rng.normal(0, 1e-3, (9, dimensions))
    assert near_duplicates(triples.astype(np.float32)) == []


def test_features_that_tell_no_images_apart_are_no_duplicates():
    assert near_duplicates(np.zeros((50, 3), np.float32)) == []
    assert near_duplicates(np.float32([[1, 2], [1, 2]]))[0].tolist() == [0, 1]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_training_that_diverges_is_said():
    features, true = blobs(120)
    wild, data = Recipe(learning_rate=1e6, weight_decay=1.0), FeatureSet(features, true)
    with pytest.raises(UserError, match="diverged with learning rate 1e[+]06, .* a smaller"):
        training.second_step(data, np.eye(C, dtype=np.float32)[true], wild, 0)
    with pytest.raises(UserError, match="diverged with .*, alpha 1e[+]09 and beta 0.8, expected"):
        training.estimate_errors(data, true, "abcd", Recipe(alpha=1e9), 0)


def test_folds_divide_every_class():
    given = np.repeat([0, 1, 2], [7, 3, 20])
    fold = folds(given, 3, 0)
    for k in range(3):
        counts = np.bincount(fold[given == k], minlength=3)
        assert counts.max() - counts.min() <= 1
    with pytest.raises(UserError, match="4 images in 3 folds"):
        folds(given[:4], 3, 0)
    with pytest.raises(UserError, match="expected two or more of some class"):
        folds(np.arange(20), 3, 0)
