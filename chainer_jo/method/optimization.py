"""Settings of SGD in Algorithm 1."""

from dataclasses import dataclass

from chainer_jo.errors import Limits


@dataclass(frozen=True)
class Optimization:
    """Momentum SGD: the learning rate is divided by 10 after each of the epochs ``drops``."""

    epochs: int
    learning_rate: float
    drops: tuple[int, ...] = ()
    batch_size: int = 128
    momentum: float = 0.9
    weight_decay: float = 1e-4
    pad: int = 4
    flip: bool = True

    def __post_init__(self) -> None:
        Limits(int, 1).check("epochs", self.epochs)
        Limits(float, 0, above=True).check("learning rate", self.learning_rate)
