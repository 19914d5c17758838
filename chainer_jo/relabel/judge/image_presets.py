"""Presets for a user's images: the paper's two steps, in length and size fit for the images."""

from __future__ import annotations

from dataclasses import replace

from chainer_jo.paper import settings as paper
from chainer_jo.relabel.judge.training import batch_size
from chainer_jo.relabel.read.own_data import NAME
from chainer_jo.runs.clothing1m_presets import CLOTHING1M_PAPER
from chainer_jo.runs.experiment import Network
from chainer_jo.runs.presets import DIGITS, PAPER, Preset, pretrained

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

    Parameters are those of `small_images`. Raises UserError if there is no such file.
    """
    return replace(
        CLOTHING1M_PAPER,
        name=NAME,
        network=pretrained(weights),
        train_images=number,
        time_scale=epochs / CLOTHING1M_PAPER.first_step.epochs if epochs else 1.0,
        batch_size=batch_size(number, CLOTHING1M_PAPER.batch_size, FEWEST_BATCHES),
    )
