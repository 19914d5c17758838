"""Figures 5 and 6: pseudo labels versus symmetric noise and true labels."""

from collections.abc import Iterator
from functools import partial

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import NOTABLE, POINTS, Finding
from chainer_jo.reproduction.claims.memorization import LOSS
from chainer_jo.reproduction.paper.settings import FIGURES_5_6_NOISE_RATES
from chainer_jo.reproduction.trials import Trials

LESS_NOISY, NOISIER = (f"symmetric_{rate}" for rate in FIGURES_5_6_NOISE_RATES)
NOISY = (LESS_NOISY, NOISIER, "pseudo")
LOSSES = {"cross_entropy": "cross entropy", "classification": "KL divergence"}
"""The paper's name of each training loss in the log. The KL divergence (eq. 6) is the objective;
it equals cross entropy less the entropy of the soft labels."""


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
    compared = f"label accuracy, {LESS_NOISY} versus pseudo"
    yield Finding(compared, right, _right(results, "pseudo"), ties=True, premise=True)
    pseudo = _loss(results, "pseudo")
    yield Finding(f"loss, {LESS_NOISY} versus pseudo", loss, pseudo, unit=LOSS)


def _gain(results: Results, labels: str) -> Trials:
    before, after = (_right(results, labels, stage) for stage in ("initial", "updated"))
    return after - before


def _updated_less(results: Results) -> Iterator[Finding]:
    for labels in (LESS_NOISY, NOISIER):
        compared = f"gain in label accuracy, {labels} versus pseudo"
        gains = _gain(results, labels), _gain(results, "pseudo")
        yield Finding(compared, *gains, ties=True, unit=POINTS)


def _hardly_updated(results: Results) -> Iterator[Finding]:
    yield from _updated_less(results)
    few = Trials.of_all(NOTABLE)
    compared = f"gain in label accuracy, {NOTABLE:g} points versus pseudo"
    yield Finding(compared, few, _gain(results, "pseudo"), unit=POINTS)


def _lower_accuracy(results: Results, stage: str = "initial") -> Iterator[Finding]:
    right = _right(results, "pseudo")
    compared = f"label accuracy, pseudo versus {NOISIER}"
    yield Finding(compared, right, _right(results, NOISIER), ties=True, premise=True)
    symmetric, pseudo = (_accuracy(results, labels, stage) for labels in (NOISIER, "pseudo"))
    compared = f"test accuracy, {NOISIER} versus pseudo{', updated' * (stage == 'updated')}"
    yield Finding(compared, symmetric, pseudo, ties=True)


def _follows_the_truth(results: Results, share: float = 1.0) -> Iterator[Finding]:
    truth = _loss(results, "ground_truth")
    of = "half the distance" if share == 0.5 else "distance"
    for loss, name in LOSSES.items():
        for labels in NOISY:
            initial = abs(_loss(results, labels, "initial", loss) - truth) * share
            updated = abs(_loss(results, labels, "updated", loss) - truth)
            compared = f"{labels}, {of} from initial to true labels' loss"
            yield Finding(
                f"{compared} versus distance when updated, {name}", initial, updated, unit=LOSS
            )


def _truth_is_better(results: Results) -> Iterator[Finding]:
    truth = _accuracy(results, "ground_truth")
    for labels in NOISY:
        updated = _accuracy(results, labels, "updated")
        compared = f"test accuracy, ground truth versus updated {labels}"
        yield Finding(compared, truth, updated, ties=True)


CLAIMS = [
    Claim(
        "pseudo-loss-is-lower",
        "Section 5.7",
        "The training loss on pseudo labels is lower than under symmetric noise of r = 0.3, "
        "although more labels are corrupted.",
        "Label accuracy is lower than under symmetric noise of r = 0.3, yet the training loss "
        "before the first learning rate drop is lower.",
        _lower_loss,
        ("figure6",),
    ),
    Claim(
        "pseudo-hardly-updated",
        "Section 5.7",
        "The method hardly corrects pseudo labels.",
        "The first step raises label accuracy by less than under symmetric noise.",
        _updated_less,
        ("figure5", "figure6"),
        bounds=_hardly_updated,
        bounded_check=f"It also raises label accuracy by less than {NOTABLE:g} points.",
    ),
    Claim(
        "pseudo-accuracy-is-lower",
        "Figure 5",
        "Pseudo labels give a lower test accuracy than symmetric noise, even with fewer corrupted "
        "labels.",
        "Label accuracy is higher than under symmetric noise of r = 0.5, yet the peak of the test "
        "accuracy is lower.",
        _lower_accuracy,
        ("figure5",),
    ),
    Claim(
        "pseudo-accuracy-stays-lower",
        "Figure 5",
        "Pseudo labels give a lower test accuracy than symmetric noise also after the update.",
        "Label accuracy before the update is higher than under symmetric noise of r = 0.5, yet "
        "the peak of the test accuracy after training on the updated labels is lower.",
        partial(_lower_accuracy, stage="updated"),
        ("figure5",),
    ),
    Claim(
        "updated-loss-follows-truth",
        "Figure 6",
        "On updated labels, the training loss is close to the loss on the true labels, whatever "
        "the noise.",
        "Before the first learning rate drop, the training loss on updated labels is closer to "
        "the loss on true labels than the loss on initial labels is. Both cross entropy and KL "
        "divergence are compared.",
        _follows_the_truth,
        ("figure6",),
        bounds=partial(_follows_the_truth, share=0.5),
        bounded_check="It is less than half as far from the loss on true labels.",
    ),
    Claim(
        "truth-is-better",
        "Section 5.7",
        "Updated labels give a lower test accuracy than true labels.",
        "Peak of the test accuracy, true labels versus the updated labels of every noise.",
        _truth_is_better,
        ("figure5",),
    ),
]
