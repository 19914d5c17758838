"""The paper's hyper parameters and schedules, grouped as the experiments use them.

Nothing is stated here: every number comes from `tables` or `text`.
"""

from dataclasses import dataclass

from chainer_jo.paper import tables, text


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
    """Training with label updates, at the end of each epoch from `start_epoch` (counted from 1) on.

    New labels are the mean probabilities of the last `averaged_epochs` epochs, of all if None.
    """

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

    @classmethod
    def stated_in(cls, sentence: text.Sentence) -> "StepDecay":
        stated = sentence.numbers
        drops = tuple(value for name, value in stated.items() if name.startswith("drop"))
        return cls(stated["epochs"], stated["learning_rate"], stated["divisor"], drops)


def _pick(cls, sentence: text.Sentence):
    return cls(*(sentence[name] for name in cls.__dataclass_fields__))


CIFAR_SGD = Sgd(**text.CIFAR_SGD.numbers)
CIFAR_FIRST_STEP = FirstStep(
    **text.CIFAR_FIRST_STEP.numbers, averaged_epochs=text.CIFAR_AVERAGE["epochs"]
)
CIFAR_SECOND_STEP = StepDecay.stated_in(text.CIFAR_SECOND_STEP)
CIFAR_PADDING = text.CIFAR_AUGMENTATION["padding"]

CLOTHING1M_SIDE = text.CLOTHING1M_CROP["height"]
CLOTHING1M_CROP = text.CLOTHING1M_CROP["crop_height"]
CLOTHING1M_SGD = Sgd(**text.CLOTHING1M_SGD.numbers)
CLOTHING1M_FIRST_STEP = FirstStep(
    text.CLOTHING1M_FIRST_STEP["epochs"],
    text.CLOTHING1M_FIRST_STEP["start_epoch"],
    averaged_epochs=None,
)
CLOTHING1M_SECOND_STEP = StepDecay.stated_in(text.CLOTHING1M_SECOND_STEP)
CLOTHING1M_PARAMETERS = _pick(HyperParameters, text.CLOTHING1M_FIRST_STEP)

FIGURE2_LEARNING_RATES = (text.FIGURE2["high"], text.FIGURE2["low"])
FIGURE2_EPOCHS = text.FIGURE2["epochs"]
FIGURE3_SCHEDULE = StepDecay.stated_in(text.FIGURE3)
FIGURE4_TOPS = tuple(text.FIGURE4_RULES.numbers.values())
"""How many labels Figure 4's hard-label methods update every epoch (a fourth one updates all)."""
FIGURE4_EPOCHS = text.FIGURE4["epochs"]
FIGURE4_NOISE_RATE = text.FIGURE4["noise_rate"]

COMPARISON_TRIALS = text.SYMMETRIC_TRIALS["trials"]
SENSITIVITY_TRIALS = 3
"""Tables 6 to 11 are "triple tests"."""


def hyper_parameters(noise: str, noise_rate: float | None = None) -> HyperParameters:
    """The paper's hyper parameters of the first step on CIFAR-10.

    Parameters
    ----------
    noise : {"symmetric", "asymmetric", "pseudo"}
    noise_rate : float, optional
        One of Table 5's rates for symmetric noise; the others have one choice for all rates.

    Raises
    ------
    KeyError
        If the paper has no choice for this noise.
    """
    if noise == "asymmetric":
        return _pick(HyperParameters, text.ASYMMETRIC_PARAMETERS)
    if noise == "pseudo":
        return _pick(HyperParameters, text.PSEUDO_PARAMETERS)
    if noise != "symmetric" or noise_rate not in tables.TABLE5.keys("noise_rate"):
        raise KeyError(f"the paper has no hyper parameters for {noise} noise at rate {noise_rate}")
    return HyperParameters(
        **{
            parameter: tables.TABLE5.value(parameter=parameter, noise_rate=noise_rate)
            for parameter in tables.TABLE5.keys("parameter")
        }
    )
