"""Settings of training on features and their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from chainer_jo.errors import Limits, UserError

#: Values of ``--features`` that name no file.
COMPUTED = ("auto", "builtin", "pixels")
#: Seeds that probabilities are averaged over: SEEDS; MANY_SEEDS for less than FEW_IMAGES, where
#: probabilities depend much on the division into folds.
SEEDS, MANY_SEEDS, FEW_IMAGES = 3, 10, 1000


#: Limits of the settings that are numbers, and values of the others.
LIMITS = {
    **dict.fromkeys(("alpha", "beta", "weight_decay"), Limits(float, 0)),
    **dict.fromkeys(("seed", "warmup_epochs", "audit"), Limits(int, 0)),
    **dict.fromkeys(("epochs", "average", "seeds", "threads"), Limits(int, 1)),
    "folds": Limits(int, 2),
    "learning_rate": Limits(float, 0, above=True),
    "min_probability": Limits(float, 0, 1),
}
CHOICES = {"rule": ("posterior", "soft"), "prior": ("labels", "uniform")}


def check_limits(values: Mapping[str, Any], written: Callable[[str], str] = str) -> None:
    """Raises UserError for the first setting with a value beyond its limits; `written` gives the
    name of a setting as the user wrote it."""
    for name, value in values.items():
        if name in LIMITS:
            LIMITS[name].check(written(name), value)
        elif not (isinstance(value, str) and value in CHOICES[name]):
            expected = " or ".join(CHOICES[name])
            raise UserError(f"{written(name)} {value!r}: expected {expected}")


@dataclass(frozen=True)
class Recipe:
    """Settings of training on features; docs/label-errors.md says where the defaults come from.

    Parameters
    ----------
    alpha, beta : of eq. 5, in the first step; here the paper's for most rates of symmetric noise.
    learning_rate, weight_decay : of SGD. The decay is far above the paper's: features are not
        augmented.
    epochs : of either step.
    warmup_epochs : epochs before labels are first updated, which is t1 - 1.
    average : epochs that labels and predictions are averaged over.
    rule : of label updates: "posterior" (`PosteriorLabels`), or "soft" (eq. 9).
    folds : number of folds, each classified by a network trained on the others.
    seeds : repetitions with folds and weights of their own; None: see `SEEDS`.
    prior : p of eq. 10: "labels", the mean label after each update, or "uniform".

    Raises UserError, a ValueError, for values beyond `LIMITS` or `CHOICES`, and for a warm-up
    without an epoch after it.
    """

    alpha: float = 1.2
    beta: float = 0.8
    learning_rate: float = 0.3
    weight_decay: float = 0.01
    epochs: int = 12
    warmup_epochs: int = 2
    average: int = 2
    rule: str = "posterior"
    folds: int = 3
    seeds: int | None = None
    prior: str = "labels"

    def __post_init__(self) -> None:
        given = {f.name: x for f in fields(self) if (x := getattr(self, f.name)) is not f.default}
        check_limits(given)
        if self.warmup_epochs >= self.epochs:
            warmup = f"warmup_epochs {self.warmup_epochs}"
            raise UserError(f"{warmup}: expected fewer than the {self.epochs} epochs")

    @classmethod
    def scaled(cls, **settings: Any) -> Recipe:
        """Settings whose warm-up and averages keep their part of the ``epochs``."""
        if epochs := settings.get("epochs"):
            settings["warmup_epochs"] = round(cls.warmup_epochs / cls.epochs * epochs)
            settings["average"] = max(1, round(cls.average / cls.epochs * epochs))
        return cls(**settings)

    def number_of_seeds(self, n: int) -> int:
        """Number of seeds that probabilities of n images are averaged over."""
        return self.seeds or (SEEDS if n >= FEW_IMAGES else MANY_SEEDS)
