"""What is said of a relabelling beside its numbers: the interval around what was found in images
drawn at random, and that new labels may be worse."""

import numpy as np
import pytest

from chainer_jo.relabel.estimate.label_errors import LabelErrors
from chainer_jo.relabel.outcome.corrected_labels import (
    AuditResult,
    CorrectedLabels,
    Scores,
    Z,
    drawn_for_review,
)
from chainer_jo.relabel.outcome.outcome import Accuracy, doubt


@pytest.fixture
def errors():
    """Of six labels two change, with probabilities of 0.9 and 0.6."""
    probabilities = np.array([[0.1, 0.9], [1, 0], [1, 0], [0.6, 0.4], [0, 1], [0, 1]])
    wrong = np.array([1, 0, 1, 0, 1, 0], bool)
    given = np.array([0, 0, 0, 1, 1, 1])
    return LabelErrors("ab", given, probabilities, probabilities, wrong, np.eye(2))


def test_scores_are_of_the_labels_whose_truth_is_known(errors):
    true = np.array([1, 0, -1, 1, 0, 1])  # the first and the fifth are wrong
    assert CorrectedLabels(range(6), errors, true=true).scores() == {
        "it is changed": Scores(5, 0.5, 0.5, 0.5, 0.6, 0.6),
        "it is called wrong": Scores(5, 1.0, 1.0, 1.0, 0.6, 0.6),
    }
    assert CorrectedLabels(range(6), errors).scores() == {}


@pytest.mark.parametrize("least, changed", [(0.0, [0, 3]), (0.6, [0]), (0.7, [0]), (1.0, [])])
def test_labels_are_taken_that_are_more_probable_than_asked_for(least, changed, errors):
    labels = CorrectedLabels(range(6), errors, least=least)
    assert np.flatnonzero(labels.changed).tolist() == changed
    reviewed = np.array([-1, -1, 1, -1, -1, -1])
    labels = CorrectedLabels(range(6), errors, reviewed, least=least)
    assert np.flatnonzero(labels.changed).tolist() == sorted([*changed, 2])


def test_each_image_is_drawn_as_often_and_none_twice():
    counts = sum(np.bincount(drawn_for_review(5, 20, seed), minlength=20) for seed in range(2000))
    assert counts.sum() == 10_000 and abs(counts - 500).max() < 5 * np.sqrt(500)
    assert len(set(drawn_for_review(19, 20, 0).tolist())) == 19
    every = drawn_for_review(20, 20, 3)
    assert (np.diff(every) < 0).any(), "a random order: the first ones are a sample, too"
    np.testing.assert_array_equal(drawn_for_review(5, 20, 3), every[:5])
    assert sorted(drawn_for_review(50, 20, 0)) == list(range(20))
    assert len(drawn_for_review(0, 20, 0)) == 0


def drawn_labels(share, spread, truth, n=4000):
    """Probabilities (n,) of being wrong, and wrong labels drawn from ``truth`` of them."""
    rng = np.random.default_rng(0)
    p = rng.beta(share / spread, (1 - share) / spread, n)
    return p, rng.random(n) < truth(p)


@pytest.mark.parametrize("images", [20, 50, 200])
@pytest.mark.parametrize("share, spread, truth", [
    (0.35, 0.9, lambda p: p), (0.07, 0.6, lambda p: p), (0.01, 0.5, lambda p: p),
    (0.3, 0.9, lambda p: p**0.6), (0.3, 0.9, lambda p: p**2),  # said too low, and too high
    (0.02, 0.001, lambda p: 0.2 + 0 * p), (0.001, 0.001, lambda p: 0.02 + 0 * p),  # no idea
], ids=["worse", "aggre", "rare", "low", "high", "blind", "blind and rare"])  # fmt: skip
def test_nineteen_of_twenty_audits_hold_the_share(share, spread, truth, images):
    p, wrong = drawn_labels(share, spread, truth)
    held, shares = 0, []
    for seed in range(500):
        rows = drawn_for_review(images, len(p), seed)
        audit = AuditResult(wrong[rows], p[rows], p.mean())
        low, high = audit.interval
        held += low <= wrong.mean() <= high
        shares.append(audit.share)
    assert held >= 455, "91 %, of 95"
    assert np.mean(shares) == pytest.approx(wrong.mean(), abs=0.015)


def test_probabilities_make_the_interval_narrower():
    """By a fifth or more, versus the share of the reviewed images alone (Wilson)."""
    p, wrong = drawn_labels(0.35, 0.9, lambda p: p)
    widths = []
    for seed in range(100):
        rows = drawn_for_review(50, len(p), seed)
        audit, share = AuditResult(wrong[rows], p[rows], p.mean()), wrong[rows].mean()
        alone = 2 * Z * np.sqrt(share * (1 - share) / 50 + Z**2 / 1e4) / (1 + Z**2 / 50)
        widths.append(np.diff(audit.interval) / alone)
    assert np.mean(widths) < 0.8
    assert AuditResult(wrong, p, p.mean()).share == pytest.approx(wrong.mean()), "all reviewed"
    wrong = np.arange(50) < 20
    words = AuditResult(wrong, np.full(50, 0.001), 0.001).in_words()
    assert "20 of 50 randomly drawn labels are wrong; with the probabilities of all" in words
    assert "an estimated 40.0 % are wrong (95 %: 27.0 to 53.7 %)" in words
    assert "estimate without review: 0.1 %" in words and "depend on the appearance" in words
    words = AuditResult(wrong, np.full(50, 0.35), 0.35).in_words()
    assert "depend on the appearance" not in words


def test_labels_that_make_a_worse_network_are_doubted():
    """On any set, and by more than chance."""
    found = doubt([Accuracy("validation", 100, 0.5, 0.6), Accuracy("test", 317, 0.407, 0.009)])
    assert "probably worse" in found and "reaches 0.9 % instead of 40.7 % on test" in found
    for unchanged in ((180, 0.617, 0.661), (180, 0.617, 0.600), (1, 1.0, 0.0), (180, None, 0.1)):
        assert "probably worse" not in doubt([Accuracy("test", *unchanged)])
