"""The numbers in the paper's running text, each in a sentence of ours that says what it is.

A number is marked ``<name: number>`` and read from there, so that it is written down once and stays
next to its words. It is spelt as in the paper's LaTeX source, where a test finds it.
"""

import re
from dataclasses import dataclass

from chainer_jo.paper.printed import Number, number

_MARK = re.compile(r"<(\w+): ([^<>]+)>")


@dataclass(frozen=True)
class Sentence:
    """A statement of the paper, and the numbers in it; ``sentence["name"]`` is a number.

    ``place`` is where the paper has it: "Section 5.1", "Appendix B" or "Figure 2" for a caption.
    """

    place: str
    marked: str

    @property
    def printed(self) -> dict[str, str]:
        """The numbers as the paper's LaTeX source spells them."""
        return dict(_MARK.findall(self.marked))

    @property
    def numbers(self) -> dict[str, Number]:
        return {name: number(text) for name, text in self.printed.items()}

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]


# Data

PSEUDO_LABELS = Sentence("Section 5.1", "<accuracy: 62.50> % of the pseudo labels are right.")

# Training on CIFAR-10

CIFAR_AUGMENTATION = Sentence(
    "Section 5.2",
    "Flips, and crops of <height: 32> by <width: 32> after padding by <padding: 4> pixels.",
)
CIFAR_SGD = Sentence(
    "Section 5.2",
    "SGD with momentum <momentum: 0.9>, weight decay <weight_decay: 10^{-4}> and batches of "
    "<batch_size: 128>.",
)
CIFAR_FIRST_STEP = Sentence(
    "Section 5.2",
    "The first step has <epochs: 200> epochs and updates labels from epoch <start_epoch: 70> on.",
)
CIFAR_AVERAGE = Sentence(
    "Section 5.2", "New labels are the mean probabilities of the last <epochs: 10> epochs."
)
CIFAR_SECOND_STEP = Sentence(
    "Section 5.2",
    "The second step has <epochs: 120> epochs and starts at a learning rate of <learning_rate: "
    "0.2>, divided by <divisor: 10> after epochs <drop1: 40> and <drop2: 80>.",
)
SYMMETRIC_TRIALS = Sentence("Table 1", "Means of <trials: 5> trials.")
ASYMMETRIC_PARAMETERS = Sentence(
    "Section 5.6",
    "First step, every asymmetric noise rate: learning rate <learning_rate: 0.03>, alpha "
    "<alpha: 0.8>, beta <beta: 0.4>.",
)
PSEUDO_PARAMETERS = Sentence(
    "Section 5.7",
    "First step, pseudo labels: learning rate <learning_rate: 0.04>, alpha <alpha: 1.2>, beta "
    "<beta: 0.8>.",
)

# Training on Clothing1M

CLOTHING1M_CROP = Sentence(
    "Section 5.2",
    "Images resized to <height: 256> by <width: 256>, less the mean; of that the central "
    "<crop_height: 224> by <crop_width: 224>.",
)
CLOTHING1M_SGD = Sentence(
    "Section 5.2",
    "SGD with momentum <momentum: 0.9>, weight decay <weight_decay: 10^{-3}> and batches of "
    "<batch_size: 32>.",
)
CLOTHING1M_FIRST_STEP = Sentence(
    "Section 5.2",
    "The first step has <epochs: 10> epochs and updates labels from epoch <start_epoch: 1> on; "
    r"learning rate <learning_rate: 8\times10^{-4}>, alpha <alpha: 2.4>, beta <beta: 0.8>.",
)
CLOTHING1M_SECOND_STEP = Sentence(
    "Section 5.2",
    "The second step has <epochs: 10> epochs and starts at learning rate "
    r"<learning_rate: 5\times10^{-4}>, divided by <divisor: 10> after epoch <drop1: 5>.",
)

# Figures

FIGURE2 = Sentence(
    "Section 5.3", "<epochs: 120> epochs at a learning rate of <high: 0.2> or of <low: 0.02>."
)
FIGURE3 = Sentence(
    "Section 5.3",
    "<epochs: 600> epochs from a learning rate of <learning_rate: 0.2>, divided by <divisor: 10> "
    "after epochs <drop1: 200> and <drop2: 400>.",
)
FIGURE4 = Sentence(
    "Section 5.4", "The first step at a noise rate of <noise_rate: 0.7>, for <epochs: 1500> epochs."
)
FIGURE4_RULES = Sentence(
    "Section 5.4",
    "Hard labels: the top <few: 50>, <some: 500> or <many: 5000> are updated, or all.",
)
FIGURE4_HARD = Sentence(
    "Section 5.4",
    "The best hard-label method updates <top: 500> labels an epoch: <test_accuracy: 85.7> % test "
    "accuracy.",
)
FIGURE4_SOFT = Sentence("Section 5.4", "Soft labels: <test_accuracy: 86.0> % test accuracy.")
FIGURE4_RECOVERY = Sentence(
    "Section 5.4",
    "With <soft_recovery: 86.0> % of the labels right against <hard_recovery: 85.9> % of the best "
    "hard-label method, soft labels gain <improvement: 0.3> points of test accuracy.",
)
CROSS_ENTROPY_FALL = Sentence("Section 5.5", "Test accuracy falls from about epoch <epoch: 40> on.")
HARDEST_ASYMMETRIC = Sentence(
    "Section 5.6", "Little is gained at <noise_percent: 50> % noise alone."
)
FIGURES_5_6 = Sentence(
    "Section 5.7",
    "The pseudo labels' noise rate is between those shown beside them, <low: 0.3> and <high: 0.5>.",
)

SENTENCES = {name: value for name, value in list(globals().items()) if isinstance(value, Sentence)}
