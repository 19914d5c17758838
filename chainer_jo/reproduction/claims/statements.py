"""The claims of the paper, by section."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from chainer_jo.reproduction.claims import comparisons
from chainer_jo.reproduction.claims.claim import Comparison
from chainer_jo.reproduction.claims.comparisons import Pairs
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.paper.settings import CROSS_ENTROPY_DROP_EPOCH

CROSS_ENTROPY_DROPS = "symmetric-cross-entropy-drops"
"""The effect by which the preset `half` was chosen."""


@dataclass(frozen=True)
class Claim:
    """A statement that paraphrases the paper at ``place``, and the comparisons that its words name.

    ``shown_in``: the tables and figures of the numbers, separated by blanks. A claim with
    ``own_images`` needs the paper's data set: classes and numbers of CIFAR-10, or of Clothing1M.
    """

    id: str
    place: str
    shown_in: str
    compare: Callable[[Pairs], Iterable[Comparison]]
    statement: str
    own_images: bool = False


SECTIONS: dict[str, list[Claim]] = {
    "Abstract and Section 2.2: noisy labels": [
        Claim("noise-degrades", "Abstract", "table1", Pairs.noise_degrades,
              "A network trained on noisy labels performs worse."),
        Claim("training-loss-misleads", "Section 2.2", "table1", Pairs.loss_misleads,
              "The loss on noisy labels does not measure performance on true labels, so early "
              "stopping by this loss does not work well."),
        Claim("labels-are-corrected", "Abstract", "table1 table2", Pairs.corrects,
              "Updating network and labels in turn corrects noisy labels during training."),
    ],
    "Section 4: soft labels and the terms of the loss": [
        Claim("soft-tests-better", "Section 4.1", "figure4",
              partial(Pairs.rule_is_better, rule="soft", accuracy="test"),
              "Soft labels perform better than hard labels."),
        Claim("prior-prevents-one-class", "Section 4.2", "ablations", Pairs.collapses,
              "The term L_p is required to keep the labels from collapsing to one class."),
        Claim("entropy-concentrates-labels", "Section 4.2", "ablations",
              partial(Pairs.ablation_is_worse, removed="entropy", quantities=("above_0.99",)),
              "The term L_e concentrates every soft label on one class."),
        Claim("entropy-is-required", "Section 4.2", "ablations",
              partial(Pairs.ablation_is_worse, removed="entropy", quantities=("last",)),
              "Soft labels require the term L_e."),
        Claim("without-both-terms-stuck", "Section 4.2", "ablations", Pairs.is_stuck,
              "With alpha = beta = 0, network and labels stop changing."),
    ],
    "Section 5.2: averages of predictions": [
        Claim("averaging-prevents-wrong-updates", "Section 5.2", "ablations",
              partial(Pairs.ablation_is_worse, removed="averaging", quantities=("first", "last")),
              "Averaging a network's predictions over epochs prevents wrong label updates."),
    ],
    "Section 5.3: learning rate and memorisation": [
        Claim("low-rate-drops", "Figure 2", "figure2",
              partial(Pairs.peak_to_end, rate=comparisons.LOW_RATE, drop=True),
              "At a low learning rate (0.02), test accuracy drops gradually."),
        Claim("high-rate-keeps", "Figure 2", "figure2",
              partial(Pairs.peak_to_end, rate=comparisons.HIGH_RATE, drop=False),
              "At a high learning rate (0.2), test accuracy remains high until training ends."),
        Claim("every-noise-is-fitted", "Section 5.3", "figure3", Pairs.noise_is_fitted,
              "The network has memorised the noisy labels when training ends, at high noise "
              "rates too."),
        Claim("loss-rises-with-noise", "Section 5.3", "figure3", Pairs.loss_rises,
              "While the learning rate is high, more noise means a clearly higher training loss."),
        Claim("high-rate-does-not-memorize", "Section 5.3", "figure3", Pairs.high_rate_does_not_fit,
              "A high learning rate keeps the network from memorising noisy labels."),
    ],
    "Section 5.4: soft and hard labels": [
        Claim("soft-converges-faster", "Section 5.4", "figure4", Pairs.converges_faster,
              "Soft labels converge faster than every kind of hard labels."),
        Claim("soft-recovers-better", "Section 5.4", "figure4",
              partial(Pairs.rule_is_better, rule="soft", accuracy="recovery"),
              "Soft labels end with a better label accuracy than every kind of hard labels."),
        Claim("top-500-is-best", "Section 5.4", "figure4",
              partial(Pairs.rule_is_better, rule=comparisons.BEST_HARD_RULE, accuracy="test"),
              "The best hard-label method updates 500 labels an epoch.", own_images=True),
        Claim("soft-tests-better-at-equal-recovery", "Section 5.4", "figure4",
              Pairs.better_at_equal_recovery,
              "Soft labels give a better test accuracy than hard labels of about the same label "
              "accuracy: their probabilities carry information."),
    ],
    "Section 5.5: symmetric noise": [
        *(Claim(f"symmetric-{accuracy}-is-better", "Section 5.5", "table1",
                partial(Pairs.beats, table="table1", others=("cross_entropy",), accuracy=accuracy),
                f"Under symmetric noise, the joint method has the better {name}.")
          for accuracy, name in comparisons.ACCURACIES.items()),
        Claim(CROSS_ENTROPY_DROPS, "Section 5.5", "table1",
              partial(Pairs.best_to_last, table="table1", method="cross_entropy", drop=True),
              "With cross entropy on the noisy labels, test accuracy drops after about epoch "
              f"{CROSS_ENTROPY_DROP_EPOCH}, where the learning rate is first divided by 10."),
        Claim("low-rate-fits-noise", "Section 5.5", "table1", Pairs.low_rate_fits_noise,
              "A lower learning rate helps the network to memorise the noisy labels."),
        Claim("symmetric-joint-keeps", "Section 5.5", "table1",
              partial(Pairs.best_to_last, table="table1", method="joint", drop=False),
              "On the labels of the joint method, test accuracy stays high until the end."),
    ],
    "Section 5.6: asymmetric noise": [
        *(Claim(f"asymmetric-{accuracy}-is-better", "Section 5.6", "table2",
                partial(Pairs.beats, table="table2", others=comparisons.METHODS, accuracy=accuracy),
                f"Under asymmetric noise, the joint method has a significantly better {name}.")
          for accuracy, name in comparisons.ACCURACIES.items()),
        Claim("half-asymmetric-gains-least", "Section 5.6", "table2", Pairs.gains_least,
              "The joint method gains little at a noise rate of 50 %, and only there."),
        Claim("cat-and-dog-are-why", "Section 5.6", "table2", Pairs.exchanged_classes,
              "The joint method gains little at 50 % because the noise exchanges cats and dogs, "
              "which then cannot be told apart.", own_images=True),
        Claim("asymmetric-cross-entropy-drops", "Section 5.6", "table2",
              partial(Pairs.best_to_last, table="table2", method="cross_entropy", drop=True),
              "With cross entropy on the noisy labels, test accuracy drops at a low learning "
              "rate."),
        Claim("asymmetric-forward-drops", "Section 5.6", "table2",
              partial(Pairs.best_to_last, table="table2", method="forward", drop=True),
              "With forward correction, test accuracy drops as with cross entropy."),
        Claim("asymmetric-joint-keeps", "Section 5.6", "table2",
              partial(Pairs.best_to_last, table="table2", method="joint", drop=False),
              "With the joint method, test accuracy stays high and does not drop."),
    ],
    "Section 5.7: pseudo labels": [
        Claim("pseudo-loss-is-lower", "Section 5.7", "figure6", Pairs.pseudo_loss_is_lower,
              "The training loss on pseudo labels is lower than under symmetric noise of r = 0.3, "
              "although more labels are corrupted."),
        Claim("pseudo-corrected-less", "Section 5.7", "figure5 figure6",
              Pairs.pseudo_is_corrected_less,
              "The method does not correct pseudo labels adequately."),
        Claim("pseudo-accuracy-is-lower", "Figure 5", "figure5",
              partial(Pairs.pseudo_accuracy_is_lower, stage="initial"),
              "Pseudo labels give a lower test accuracy than symmetric noise, even with fewer "
              "corrupted labels."),
        Claim("pseudo-accuracy-stays-lower", "Figure 5", "figure5",
              partial(Pairs.pseudo_accuracy_is_lower, stage="updated"),
              "Pseudo labels give a lower test accuracy than symmetric noise also after the "
              "update."),
        Claim("updated-loss-follows-truth", "Figure 6", "figure6", Pairs.follows_the_truth,
              "On updated labels, the training loss is close to the loss on the true labels, "
              "whatever the noise."),
        Claim("truth-is-better", "Section 5.7", "figure5", Pairs.truth_is_better,
              "Updated labels give a lower test accuracy than true labels."),
    ],
    "Section 5.8: Clothing1M": [
        Claim("clothing1m-beats-forward", "Section 5.8", "table3", Pairs.beats_quoted_forward,
              "On Clothing1M, the joint method has a better test accuracy than Forward (#2).",
              own_images=True),
    ],
    "Appendix B: hyper parameters": [
        Claim("noise-wants-high-rate", "Appendix B", "table8 table9", Pairs.wants_high_rate,
              "The best learning rate tends to rise with the rate of symmetric noise."),
        *(Claim(f"table{table.number}-insensitive", "Appendix B", f"table{table.number}",
                partial(Pairs.other_values_do_well, table=table),
                "Accuracy depends little on the hyper parameters: other values in "
                f"Table {table.number} do well too.")
          for table in (tables.TABLE6, tables.TABLE7, tables.TABLE8, tables.TABLE9)),
        *(Claim(f"table{table.number}-start", "Appendix B", f"table{table.number}",
                partial(Pairs.updates_start, table=table),
                "Label updates can start at any epoch after validation accuracy is high, because "
                f"it stays high at a high learning rate (Table {table.number}).")
          for table in (tables.TABLE10, tables.TABLE11)),
        *(Claim(f"table{table.number}-stop", "Appendix B", f"table{table.number}",
                partial(Pairs.updates_stop, table=table),
                "Label updates can stop at any epoch after the training loss has converged, at no "
                f"cost in accuracy (Table {table.number}).")
          for table in (tables.TABLE10, tables.TABLE11)),
    ],
    "Appendix C: labels by probability": [
        Claim("sure-labels-are-right", "Appendix C", "table12 table13",
              partial(Pairs.labels_by_probability, place=0, wrong=False),
              "Labels with a high probability are almost all correct."),
        Claim("unsure-labels-are-wrong", "Appendix C", "table12 table13",
              partial(Pairs.labels_by_probability, place=-2, wrong=True),
              "Labels with a low probability seem to be updated incorrectly."),
    ],
}  # fmt: skip
