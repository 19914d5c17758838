"""The numbers in the paper's running text, each inside the sentence that states it.

A sentence is quoted as in the paper's LaTeX source, with every number marked ``<name: number>``:
the number is read from there, so that it is written down once and stays next to its words.
"""

import re
from dataclasses import dataclass

from chainer_jo.paper.table import Number, number

_MARK = re.compile(r"<(\w+): ([^<>]+)>")


@dataclass(frozen=True)
class Sentence:
    """A sentence (or a part of one) and the numbers in it; ``sentence["name"]`` is a number.

    ``place`` is where the paper has it: "Section 5.1", "Appendix B" or "Figure 2" for a caption.
    """

    place: str
    marked: str

    @property
    def quote(self) -> str:
        """The words as the paper's LaTeX source has them."""
        return _MARK.sub(r"\2", self.marked)

    @property
    def numbers(self) -> dict[str, Number]:
        return {name: number(text) for name, text in _MARK.findall(self.marked)}

    def __getitem__(self, name: str) -> Number:
        return self.numbers[name]


# Data

VALIDATION = Sentence("Section 5.1", r"retain <percent: 10>\% of the training data for validation")
PSEUDO_LABELS = Sentence(
    "Section 5.1", r"The overall accuracy of the pseudo labels is <accuracy: 62.50>\%."
)
CLOTHING1M_IMAGES = Sentence(
    "Section 5.1",
    "contains <millions: 1> million images of clothing obtained from several online shopping "
    "websites that are classified into the following <classes: 14> classes",
)
CLOTHING1M_LABELS = Sentence(
    "Section 5.1", r"the overall accuracy of the noisy labels is <accuracy: 61.54>\%"
)
CLOTHING1M_CLEAN = Sentence(
    "Section 5.1",
    "The Clothing1M dataset also contains $<train: 50k>$, $<validation: 14k>$ and $<test: 10k>$ "
    "of clean data for training, validation, and testing, respectively",
)

# Training on CIFAR-10

CIFAR_NETWORK = Sentence("Section 5.2", "the network based on PreAct ResNet-<layers: 32>")
CIFAR_AUGMENTATION = Sentence(
    "Section 5.2",
    r"<height: 32>$\times$<width: 32> random crops after padding with <padding: 4> pixels on each "
    r"side",
)
CIFAR_SGD = Sentence(
    "Section 5.2",
    "We used SGD with a momentum of <momentum: 0.9>, a weight decay of $<weight_decay: "
    "10^{-4}>$, and batch size of <batch_size: 128>.",
)
CIFAR_FIRST_STEP = Sentence(
    "Section 5.2",
    "In the first step of our method, we trained the network for <epochs: 200> epochs and began "
    "updating labels from the <start_epoch: 70>th epoch.",
)
CIFAR_AVERAGE = Sentence(
    "Section 5.2",
    "the average output probability of the network of the past <epochs: 10> epochs",
)
CIFAR_SECOND_STEP = Sentence(
    "Section 5.2",
    "In the second step of our method, we trained the network for <epochs: 120> epochs on the "
    "labels obtained in the first step. We began training with a learning rate of "
    "<learning_rate: 0.2> and divided it by <divisor: 10> after <drop1: 40> and <drop2: 80> "
    "epochs.",
)
SYMMETRIC_TRIALS = Sentence("Table 1", "We report the average score of <trials: 5> trials.")
ASYMMETRIC_TRIALS = Sentence("Table 2", "We report the average score of <trials: 5> trials.")
ASYMMETRIC_PARAMETERS = Sentence(
    "Section 5.6",
    r"In the first step of our method, we used a learning rate of <learning_rate: 0.03> and used "
    r"<alpha: 0.8> for $\alpha$ and <beta: 0.4> for $\beta$, respectively for all the noise rates.",
)
PSEUDO_PARAMETERS = Sentence(
    "Section 5.7",
    r"In the first step of our method, we used a learning rate of <learning_rate: 0.04> and used "
    r"<alpha: 1.2> for $\alpha$ and <beta: 0.8> for $\beta$.",
)

# Training on Clothing1M

CLOTHING1M_NETWORK = Sentence("Section 5.2", "we used ResNet-<layers: 50> pre-trained on ImageNet")
CLOTHING1M_CROP = Sentence(
    "Section 5.2",
    r"we resized the images to $<height: 256>\times<width: 256>$, performed mean subtraction, and "
    r"cropped the middle $<crop_height: 224>\times<crop_width: 224>$.",
)
CLOTHING1M_SGD = Sentence(
    "Section 5.2",
    "We used SGD with a momentum of <momentum: 0.9>, a weight decay of $<weight_decay: "
    "10^{-3}>$, and batch size of <batch_size: 32>.",
)
CLOTHING1M_FIRST_STEP = Sentence(
    "Section 5.2",
    r"In the first step of our method, we trained the network for <epochs: 10> epochs and began "
    r"updating labels from the <start_epoch: 1>st epoch. We used a learning rate of "
    r"$<learning_rate: 8\times10^{-4}>$, and used <alpha: 2.4> for $\alpha$ and <beta: 0.8> for "
    r"$\beta$.",
)
CLOTHING1M_SECOND_STEP = Sentence(
    "Section 5.2",
    r"In the second step of our method, we trained the network for <epochs: 10> epochs on the "
    r"labels obtained in the first step. We began training with a learning rate of "
    r"$<learning_rate: 5\times10^{-4}>$ and divided it by <divisor: 10> after <drop1: 5> epochs.",
)

# Figures

FIGURE2 = Sentence(
    "Section 5.3",
    "We trained the network for <epochs: 120> epochs with a learning rates of <high: 0.2> or "
    "<low: 0.02>.",
)
FIGURE3 = Sentence(
    "Section 5.3",
    "We trained the network for <epochs: 600> epochs. We commenced training with a learning rate "
    "of <learning_rate: 0.2> and divided it by <divisor: 10> after <drop1: 200> and <drop2: 400> "
    "epochs.",
)
FIGURE3_NOISE = Sentence(
    "Section 5.3",
    r"our model fit the noisy labels even if the noise rate was high (for \eg, $r=<noise_rate: "
    r"0.9>$)",
)
FIGURE4 = Sentence(
    "Section 5.4",
    "we trained the network on SN-CIFAR (noise rate $r=<noise_rate: 0.7>$) for <epochs: 1500> "
    "epochs by using the first step of our method.",
)
FIGURE4_RULES = Sentence(
    "Section 5.4", "we update top <few: 50>, <some: 500>, <many: 5000>, or all labels"
)
FIGURE4_HARD = Sentence(
    "Section 5.4",
    r"In the hard-label methods, updating <top: 500> labels every epoch is optimal and the test "
    r"accuracy is <test_accuracy: 85.7>\%.",
)
FIGURE4_SOFT = Sentence(
    "Section 5.4", r"the test accuracy of the soft-label method is <test_accuracy: 86.0>\%."
)
FIGURE4_RECOVERY = Sentence(
    "Section 5.4",
    r"though the recovery accuracy of the soft-label method obtained in the first step is "
    r"<soft_recovery: 86.0>\%, which is approximately equal to <hard_recovery: 85.9>\% of the "
    r"hard-label method (updating 500 labels every epoch), the test accuracy is improved by "
    r"<improvement: 0.3>\%.",
)
CROSS_ENTROPY_FALL = Sentence(
    "Section 5.5", "the test accuracy decreases after approximately the <epoch: 40>th epoch"
)
HARDEST_ASYMMETRIC = Sentence(
    "Section 5.6",
    r"only when the noise rate is <noise_percent: 50>\%, there is no significant improvement in "
    r"accuracy",
)
FIGURES_5_6 = Sentence(
    "Section 5.7",
    "we show the results of training on SN-CIFAR (the noise rate $r=<low: 0.3>,<high: 0.5>$) "
    "because the noise rate of the pseudo labels is between",
)
FIGURES_7_8 = Sentence(
    "Figure 7",
    "The images with the top-<top: 2> and the bottom-<bottom: 2> probabilities of T-shirt",
)

SENTENCES = {name: value for name, value in list(globals().items()) if isinstance(value, Sentence)}
