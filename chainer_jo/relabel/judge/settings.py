"""Settings of training and their limits: on features, a `Recipe`; on images, presets of the paper's
two steps, in length and size fit for the images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from chainer_jo.errors import UserError
from chainer_jo.paper import settings as paper
from chainer_jo.relabel.read.own_data import NAME
from chainer_jo.runs.clothing1m_presets import CLOTHING1M_PAPER
from chainer_jo.runs.experiment import Network
from chainer_jo.runs.presets import DIGITS, PAPER, Preset, pretrained

#: Least images per batch: statistics of fewer are too noisy for batch normalisation.
SMALLEST_BATCH = 16
#: Seeds that probabilities are averaged over: SEEDS; MANY_SEEDS for less than FEW_IMAGES, where
#: probabilities depend much on the division into folds.
SEEDS, MANY_SEEDS, FEW_IMAGES = 3, 10, 1000
#: Share of a shortened first step's epochs that new labels are averaged over, the paper's ten at
#: most: 5 of 70, as in the presets.
AVERAGED_SHARE = 1 / 14
#: Folds, each classified by a network trained on the others.
FOLDS = 3
#: Least number of batches in an epoch; see `batch_size`.
FEWEST_BATCHES = 20
#: Least number of training images, units and widths of each network: the paper's, the preset
#: ``half``'s, and for few images one unit a stage, as in ``digits``, and half the widths.
SIZES: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...] = (
    (30_000, (5, 5, 5), (32, 64, 128)),
    (10_000, (2, 2, 2), (32, 64, 128)),
    (0, (1, 1, 1), (16, 32, 64)),
)
#: Side in pixels below which images are halved once instead of twice, as in the preset ``digits``:
#: less than 4 x 4 would be left.
HALVED_ONCE_BELOW = 16


def _whole(least: int) -> tuple:
    return Integral, f"at least {least}, a whole number", lambda x: x >= least


_NOT_NEGATIVE = Real, "a finite number that is not negative", lambda x: 0 <= x < math.inf
#: Type of each setting, its limits in words, and a test of a value.
LIMITS: dict[str, tuple[type, str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("alpha", "beta", "weight_decay"), _NOT_NEGATIVE),
    **dict.fromkeys(("seed", "quiet", "audit"), _whole(0)),
    **dict.fromkeys(("epochs", "average", "seeds"), _whole(1)),
    "folds": _whole(2),
    "size": _whole(8),
    "learning_rate": (Real, "a finite positive number", lambda x: 0 < x < math.inf),
    "min_probability": (Real, "0 to 1", lambda x: 0 <= x <= 1),
    "rule": (str, "posterior or soft", ("posterior", "soft").__contains__),
    "prior": (str, "labels or uniform", ("labels", "uniform").__contains__),
}


def check_limits(values: Mapping[str, Any], written: Callable[[str], str] = str) -> None:
    """Raises UserError for the first setting with a value beyond its limits; `written` gives the
    name of a setting as the user wrote it."""
    for name, value in values.items():
        kind, expected, fits = LIMITS[name]
        if not isinstance(value, kind) or not fits(value):
            shown = value if isinstance(value, Real) else repr(value)
            raise UserError(f"{written(name)} {shown}: expected {expected}")


@dataclass(frozen=True)
class Recipe:
    """Settings of training on features; docs/label-errors.md says where the defaults come from.

    Parameters
    ----------
    alpha, beta : of eq. 5, in the first step; here the paper's for most rates of symmetric noise.
    learning_rate, weight_decay : of SGD. The decay is far above the paper's: features are not
        augmented.
    epochs : of either step.
    quiet : epochs before labels are first updated, which is t1 - 1.
    average : epochs that labels and predictions are averaged over.
    rule : of label updates: "posterior" (`PosteriorLabels`), or "soft" (``eq:soft``).
    folds : number of folds, each classified by a network trained on the others.
    seeds : repetitions with folds and weights of their own; None: see `SEEDS`.
    prior : p of eq. 10: "labels", the mean label after each update, or "uniform".

    Raises UserError, a ValueError, for values beyond `LIMITS`.
    """

    alpha: float = 1.2
    beta: float = 0.8
    learning_rate: float = 0.3
    weight_decay: float = 0.01
    epochs: int = 12
    quiet: int = 2
    average: int = 2
    rule: str = "posterior"
    folds: int = 3
    seeds: int | None = None
    prior: str = "labels"

    def __post_init__(self) -> None:
        given = {f.name: x for f in fields(self) if (x := getattr(self, f.name)) is not f.default}
        check_limits(given)

    def number_of_seeds(self, n: int) -> int:
        """Number of seeds that probabilities of n images are averaged over."""
        return self.seeds or (SEEDS if n >= FEW_IMAGES else MANY_SEEDS)


def batch_size(n: int, largest: int, fewest_batches: int) -> int:
    """Images per batch: the largest power of two up to ``largest`` with which an epoch of n images
    has ``fewest_batches``, but at least `SMALLEST_BATCH`, and at most n."""
    batch = largest
    while batch > SMALLEST_BATCH and n < fewest_batches * batch:
        batch //= 2
    return min(batch, n)


def small_images(side: int, number: int, epochs: int | None = None, flip: bool = False) -> Preset:
    """The paper's method on CIFAR-10, for ``number`` training images of ``side`` x ``side`` pixels.

    The noise is unknown: hyperparameters are the paper's for symmetric noise, r = 0.5.

    Parameters
    ----------
    epochs : of the first step; the other lengths keep their relation to it.
    flip : True mirrors images in training, as the paper does; a mirrored digit is none.
    """
    whole, most = PAPER.first_step, PAPER.average
    assert most is not None  # the mean of all epochs is Clothing1M's
    scale = epochs / whole.epochs if epochs else DIGITS.time_scale
    units, widths = next(size[1:] for size in SIZES if number >= size[0])
    threads = PAPER.threads
    if side < HALVED_ONCE_BELOW:
        units, widths = units[:2], (widths[0], 3 * widths[0])
        threads = DIGITS.threads
    return replace(
        PAPER,
        name=NAME,
        network=Network(units, widths),
        train_images=number,
        image_shape=(side, side, 3),
        resize=side,
        crop=side,
        time_scale=scale,
        average=max(1, min(round(AVERAGED_SHARE * max(1, round(scale * whole.epochs))), most)),
        batch_size=batch_size(number, PAPER.batch_size, FEWEST_BATCHES),
        pad=side // 8,
        flip=flip,
        threads=threads,
        real_noise=paper.hyper_parameters("symmetric", 0.5),
    )


def large_images(weights: str, number: int, epochs: int | None = None) -> Preset:
    """The paper's method on Clothing1M: ResNet-50 from a file of ``weights``, for ``number``
    training images.

    Parameters are as in `small_images`. Raises UserError if there is no such file.
    """
    return replace(
        CLOTHING1M_PAPER,
        name=NAME,
        network=pretrained(weights),
        train_images=number,
        time_scale=epochs / CLOTHING1M_PAPER.first_step.epochs if epochs else 1.0,
        batch_size=batch_size(number, CLOTHING1M_PAPER.batch_size, FEWEST_BATCHES),
    )
