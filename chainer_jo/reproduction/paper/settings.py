"""The paper's hyper parameters and schedules, and the other numbers of its running text.

Each number stands beside the section, table or figure that states it, and a test compares it with
the paper's LaTeX source. The numbers of the tables are in `tables`.
"""

from dataclasses import dataclass

from chainer_jo.reproduction.paper import tables


@dataclass(frozen=True)
class HyperParameters:
    """The choice per noise in the first step: alpha and beta of eq. (5), learning rate."""

    alpha: float
    beta: float
    learning_rate: float


@dataclass(frozen=True)
class Sgd:
    """Momentum SGD with weight decay."""

    momentum: float
    weight_decay: float
    batch_size: int


@dataclass(frozen=True)
class FirstStep:
    """Training with label updates, at the end of each epoch from `start_epoch` (counted from 1) on:
    mean probabilities of the last `averaged_epochs` epochs, of all if None."""

    epochs: int
    start_epoch: int
    averaged_epochs: int | None


@dataclass(frozen=True)
class StepDecay:
    """A learning rate that is divided by `divisor` after each of the epochs in `drops`."""

    epochs: int
    learning_rate: float
    divisor: int
    drops: tuple[int, ...]


# Section 5.2: training on CIFAR-10.
CIFAR_PADDING = 4  # pixels around an image, before a crop of its own size
CIFAR_SGD = Sgd(momentum=0.9, weight_decay=1e-4, batch_size=128)
CIFAR_FIRST_STEP = FirstStep(epochs=200, start_epoch=70, averaged_epochs=10)
CIFAR_SECOND_STEP = StepDecay(epochs=120, learning_rate=0.2, divisor=10, drops=(40, 80))

# Section 5.2: training on Clothing1M.
CLOTHING1M_SIDE = 256  # pixels after resizing
CLOTHING1M_CROP = 224  # pixels of the central crop
CLOTHING1M_SGD = Sgd(momentum=0.9, weight_decay=1e-3, batch_size=32)
CLOTHING1M_FIRST_STEP = FirstStep(epochs=10, start_epoch=1, averaged_epochs=None)
CLOTHING1M_SECOND_STEP = StepDecay(epochs=10, learning_rate=5e-4, divisor=10, drops=(5,))
CLOTHING1M_PARAMETERS = HyperParameters(alpha=2.4, beta=0.8, learning_rate=8e-4)

# Table 5 has the first step's hyper parameters for symmetric noise.
ASYMMETRIC_PARAMETERS = HyperParameters(alpha=0.8, beta=0.4, learning_rate=0.03)  # Section 5.6
PSEUDO_PARAMETERS = HyperParameters(alpha=1.2, beta=0.8, learning_rate=0.04)  # Section 5.7

# Section 5.3: Figures 2 and 3.
FIGURE2_EPOCHS = 120
FIGURE2_LEARNING_RATES = (0.2, 0.02)
FIGURE3_SCHEDULE = StepDecay(epochs=600, learning_rate=0.2, divisor=10, drops=(200, 400))

# Section 5.4: Figure 4, soft labels against hard ones; accuracies in percent.
FIGURE4_EPOCHS = 1500
FIGURE4_NOISE_RATE = 0.7
FIGURE4_TOPS = (50, 500, 5000)  # labels that a hard-label method updates per epoch; a fourth: all
FIGURE4_BEST_TOP = 500
FIGURE4_SOFT = {"test": 86.0, "recovery": 86.0}
FIGURE4_BEST_HARD = {"test": 85.7, "recovery": 85.9}

CROSS_ENTROPY_DROP_EPOCH = 40  # Section 5.5: test accuracy drops from about this epoch on
LEAST_GAIN_NOISE_RATE = 0.5  # Section 5.6: where the joint method gains little
FIGURES_5_6_NOISE_RATES = (0.3, 0.5)  # Section 5.7: symmetric noise shown beside pseudo labels

CLASSES = 10  # of CIFAR-10, Section 5.1
COMPARISON_TRIALS = 5  # Table 1
SENSITIVITY_TRIALS = 3  # Tables 6 to 11 are "triple tests"


def hyper_parameters(noise: str, noise_rate: float | None = None) -> HyperParameters:
    """Hyper parameters of the first step on CIFAR-10 under symmetric noise of one of Table 5's
    rates, or under ``asymmetric`` or ``pseudo`` noise. Raises KeyError if the paper has none."""
    if noise in ("asymmetric", "pseudo"):
        return ASYMMETRIC_PARAMETERS if noise == "asymmetric" else PSEUDO_PARAMETERS
    cells = {name: n for (name, rate), n in tables.TABLE5.cells.items() if rate == noise_rate}
    if noise != "symmetric" or not cells:
        raise KeyError(f"the paper has no hyper parameters for {noise} noise at rate {noise_rate}")
    return HyperParameters(*cells.values())  # in the order of the table


def noise_entropy(rate: float) -> float:
    """Entropy (nats) of a label under symmetric noise (eq. 13), given the true label: the lowest
    mean training loss of a model that has memorised no corrupted label."""
    from scipy.special import entr  # not for commands that only list or refuse

    each = rate / CLASSES
    return float(entr(1 - rate + each) + (CLASSES - 1) * entr(each))
