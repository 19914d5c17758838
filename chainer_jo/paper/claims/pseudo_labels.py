"""Figures 5 and 6: labels that a network made, against random and against true ones."""

from collections.abc import Iterator

from chainer_jo.paper.claims import curves
from chainer_jo.paper.claims.claim import Claim, Results
from chainer_jo.paper.claims.scatter import Estimate, Finding, exceeds
from chainer_jo.paper.text import FIGURES_5_6

LESS_NOISY, NOISIER = (f"symmetric_{FIGURES_5_6[bound]}" for bound in ("low", "high"))
NOISY = (LESS_NOISY, NOISIER, "pseudo")


def _right(results: Results, labels: str, stage: str = "initial") -> Estimate:
    return Estimate(results.trials("label_accuracy", labels=labels, stage=stage))


def _loss(results: Results, labels: str, stage: str = "initial") -> Estimate:
    loss = results.curve("figure6", labels=labels, stage=stage)
    return curves.before_drop(loss, results.schedule("second_step"))


def _accuracy(results: Results, labels: str, stage: str = "initial") -> Estimate:
    return curves.peak(results.curve("figure5", labels=labels, stage=stage))


def _lower_loss(results: Results) -> Iterator[Finding]:
    right, loss = _right(results, LESS_NOISY), _loss(results, LESS_NOISY)
    yield exceeds(f"right labels, {LESS_NOISY} against pseudo", right, _right(results, "pseudo"))
    yield exceeds(f"loss, {LESS_NOISY} against pseudo", loss, _loss(results, "pseudo"))


def _hardly_updated(results: Results) -> Iterator[Finding]:
    def gain(labels: str) -> Estimate:
        before, after = (_right(results, labels, stage) for stage in ("initial", "updated"))
        return after - before

    for labels in (LESS_NOISY, NOISIER):
        what = f"labels put right, {labels} against pseudo"
        yield exceeds(what, gain(labels), gain("pseudo"))


def _lower_accuracy(results: Results) -> Iterator[Finding]:
    right = _right(results, "pseudo")
    yield exceeds(f"right labels, pseudo against {NOISIER}", right, _right(results, NOISIER))
    symmetric, pseudo = (_accuracy(results, labels) for labels in (NOISIER, "pseudo"))
    yield exceeds(f"test accuracy, {NOISIER} against pseudo", symmetric, pseudo)


def _lower_accuracy_still(results: Results) -> Iterator[Finding]:
    symmetric, pseudo = (_accuracy(results, labels, "updated") for labels in (NOISIER, "pseudo"))
    yield exceeds(f"test accuracy, {NOISIER} against pseudo, updated", symmetric, pseudo)


def _follows_the_truth(results: Results) -> Iterator[Finding]:
    truth = _loss(results, "ground_truth")
    for labels in NOISY:
        initial, updated = (_loss(results, labels, stage) for stage in ("initial", "updated"))
        yield exceeds(
            f"{labels}, half the distance of the initial loss to the true labels' against the "
            "updated",
            abs(initial - truth) * 0.5,
            abs(updated - truth),
        )


def _truth_is_better(results: Results) -> Iterator[Finding]:
    truth = _accuracy(results, "ground_truth")
    for labels in NOISY:
        updated = _accuracy(results, labels, "updated")
        yield exceeds(f"test accuracy, ground truth against updated {labels}", truth, updated)


CLAIMS = [
    Claim(
        "pseudo-loss-is-lower",
        "Section 5.7",
        "Although the number of inaccurate labels in the pseudo labels exceeds that of the "
        "symmetric noise labels ($r=0.3$), the value of the training loss of the pseudo labels "
        "is lower than that of the symmetric noise labels.",
        "Fewer labels are right than with symmetric noise of r = 0.3, and yet the training loss "
        "before the learning rate is first divided is lower.",
        _lower_loss,
    ),
    Claim(
        "pseudo-hardly-updated",
        "Section 5.7",
        "Thus, the pseudo labels were not updated adequately.",
        "The first step puts a smaller part of the labels right than with symmetric noise.",
        _hardly_updated,
    ),
    Claim(
        "pseudo-accuracy-is-lower",
        "Figure 5",
        "The test accuracy on the pseudo labels is lower than that on the symmetric noise "
        "labels even if the number of inaccurate labels is lower.",
        "More labels are right than with symmetric noise of r = 0.5, and yet the peak of the test "
        "accuracy is lower.",
        _lower_accuracy,
    ),
    Claim(
        "pseudo-accuracy-stays-lower",
        "Figure 5",
        "This trend remains if the labels are updated.",
        "Peak of the test accuracy on the updated labels, symmetric noise of r = 0.5 against "
        "pseudo labels.",
        _lower_accuracy_still,
    ),
    Claim(
        "updated-loss-follows-truth",
        "Figure 6",
        "Each of the training losses on the labels updated from different noisy labels follows the "
        "training loss on the ground-truth labels.",
        "Before the learning rate is first divided, the updated labels' training loss is less "
        "than half as far from the true labels' as the initial labels' is.",
        _follows_the_truth,
    ),
    Claim(
        "truth-is-better",
        "Section 5.7",
        "The test accuracy of training on the labels recovered from the noisy labels is worse "
        "than that of training on the ground-truth labels",
        "Peak of the test accuracy, true labels against the updated labels of every noise.",
        _truth_is_better,
    ),
]
