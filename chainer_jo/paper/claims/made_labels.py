"""Figures 5 and 6: labels that a network made, against random and against true ones."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.paper.claims import phases
from chainer_jo.paper.claims.claim import Claim, Results
from chainer_jo.paper.claims.decision import NOTABLE, POINTS, Finding, exceeds
from chainer_jo.paper.claims.memorization import LOSS
from chainer_jo.paper.settings import FIGURES_5_6_NOISE_RATES
from chainer_jo.paper.trials import Trials

LESS_NOISY, NOISIER = (f"symmetric_{rate}" for rate in FIGURES_5_6_NOISE_RATES)
NOISY = (LESS_NOISY, NOISIER, "pseudo")
LOSSES = {"cross_entropy": "cross entropy", "classification": "KL divergence"}
"""Names of the training loss in the paper, by those in a log: the KL divergence (eq. 6) is the
objective, and lower by the entropy of soft labels."""


def _right(results: Results, labels: str, stage: str = "initial") -> Trials:
    return results.trials("label_accuracy", labels=labels, stage=stage)


def _loss(
    results: Results, labels: str, stage: str = "initial", loss: str = "cross_entropy"
) -> Trials:
    curves = results.curve("figure6", labels=labels, stage=stage, logged=loss)
    return phases.before_drop(curves, results.schedule("second_step"))


def _accuracy(results: Results, labels: str, stage: str = "initial") -> Trials:
    return phases.peak(results.curve("figure5", labels=labels, stage=stage))


def _lower_loss(results: Results) -> Iterator[Finding]:
    right, loss = _right(results, LESS_NOISY), _loss(results, LESS_NOISY)
    compared = f"right labels, {LESS_NOISY} against pseudo"
    yield Finding(compared, right, _right(results, "pseudo"), ties=True, premise=True)
    pseudo = _loss(results, "pseudo")
    yield exceeds(f"loss, {LESS_NOISY} against pseudo", loss, pseudo, unit=LOSS)


def _hardly_updated(results: Results) -> Iterator[Finding]:
    def gain(labels: str) -> Trials:
        before, after = (_right(results, labels, stage) for stage in ("initial", "updated"))
        return after - before

    for labels in (LESS_NOISY, NOISIER):
        compared = f"labels put right, {labels} against pseudo"
        yield exceeds(compared, gain(labels), gain("pseudo"), ties=True, unit=POINTS)
    few = Trials.of_all(NOTABLE)
    yield exceeds(f"{NOTABLE:g} points against pseudo", few, gain("pseudo"), unit=POINTS)


def _lower_accuracy(results: Results, stage: str = "initial") -> Iterator[Finding]:
    right = _right(results, "pseudo")
    compared = f"right labels, pseudo against {NOISIER}"
    yield Finding(compared, right, _right(results, NOISIER), ties=True, premise=True)
    symmetric, pseudo = (_accuracy(results, labels, stage) for labels in (NOISIER, "pseudo"))
    compared = f"test accuracy, {NOISIER} against pseudo{', updated' * (stage == 'updated')}"
    yield exceeds(compared, symmetric, pseudo, ties=True)


def _follows_the_truth(results: Results) -> Iterator[Finding]:
    truth = _loss(results, "ground_truth")
    for loss, name in LOSSES.items():
        for labels in NOISY:
            initial = abs(_loss(results, labels, "initial", loss) - truth) * 0.5
            updated = abs(_loss(results, labels, "updated", loss) - truth)
            compared = f"{labels}, half the distance of the initial loss to the true labels'"
            yield exceeds(f"{compared} against the updated, {name}", initial, updated, unit=LOSS)


def _truth_is_better(results: Results) -> Iterator[Finding]:
    truth = _accuracy(results, "ground_truth")
    for labels in NOISY:
        updated = _accuracy(results, labels, "updated")
        compared = f"test accuracy, ground truth against updated {labels}"
        yield exceeds(compared, truth, updated, ties=True)


CLAIMS = [
    Claim(
        "pseudo-loss-is-lower",
        "Section 5.7",
        "Pseudo labels are fitted with a lower training loss than symmetric noise of r = 0.3, "
        "though more of them are wrong.",
        "Fewer labels are right than with symmetric noise of r = 0.3, and yet the training loss "
        "before the learning rate is first divided is lower.",
        _lower_loss,
        ("figure6",),
    ),
    Claim(
        "pseudo-hardly-updated",
        "Section 5.7",
        "Pseudo labels are hardly put right.",
        f"The first step puts less than {NOTABLE:g} % of the labels right, and less than with "
        "symmetric noise.",
        _hardly_updated,
        ("figure5", "figure6"),
    ),
    Claim(
        "pseudo-accuracy-is-lower",
        "Figure 5",
        "Pseudo labels give a lower test accuracy than symmetric noise, even with fewer of them "
        "wrong.",
        "More labels are right than with symmetric noise of r = 0.5, and yet the peak of the test "
        "accuracy is lower.",
        _lower_accuracy,
        ("figure5",),
    ),
    Claim(
        "pseudo-accuracy-stays-lower",
        "Figure 5",
        "Pseudo labels give the lower test accuracy once all labels are updated, too.",
        "More labels are right, before they are updated, than with symmetric noise of r = 0.5, and "
        "yet the peak of the test accuracy on the updated labels is lower.",
        partial(_lower_accuracy, stage="updated"),
        ("figure5",),
    ),
    Claim(
        "updated-loss-follows-truth",
        "Figure 6",
        "On updated labels, whatever noise they come from, the training loss runs close to that on "
        "the true labels.",
        "Before the learning rate is first divided, the updated labels' training loss, be it the "
        "cross entropy or the KL divergence, is less than half as far from the true labels' as the "
        "initial labels' is.",
        _follows_the_truth,
        ("figure6",),
    ),
    Claim(
        "truth-is-better",
        "Section 5.7",
        "Updated labels give a lower test accuracy than the true ones.",
        "Peak of the test accuracy, true labels against the updated labels of every noise.",
        _truth_is_better,
        ("figure5",),
    ),
]
