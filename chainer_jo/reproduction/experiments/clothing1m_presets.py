"""Presets of Clothing1M (Section 5.8), as in the paper or on a stand-in, and its study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.reproduction.experiments.experiment import Network
from chainer_jo.reproduction.experiments.presets import Preset, Study
from chainer_jo.reproduction.paper import settings as paper

CLOTHING1M_STANDIN = "clothing1m-standin"

CLOTHING1M_PAPER = Preset(
    name="paper",
    summary="exactly the paper: ResNet-50, 10 + 10 epochs",
    reference_data=None,
    default_data=None,
    network=None,
    train_images=1_000_000,
    image_shape=None,
    resize=paper.CLOTHING1M_SIDE,
    crop=paper.CLOTHING1M_CROP,
    first_step=paper.CLOTHING1M_FIRST_STEP,
    second_step=paper.CLOTHING1M_SECOND_STEP,
    average=paper.CLOTHING1M_FIRST_STEP.averaged_epochs,
    batch_size=paper.CLOTHING1M_SGD.batch_size,
    momentum=paper.CLOTHING1M_SGD.momentum,
    weight_decay=paper.CLOTHING1M_SGD.weight_decay,
    pad=0,
    flip=False,
    seconds_per_iteration=107.0,
    real_noise=paper.CLOTHING1M_PARAMETERS,
    trials=(1, 1, 1),
)
CLOTHING1M_DIGITS = replace(
    CLOTHING1M_PAPER,
    name="digits",
    summary="14 classes of real digits and drawn shapes, a small network from scratch, four times "
    "the epochs, labels from epoch 8 on: an untrained network has nothing to say before",
    default_data=CLOTHING1M_STANDIN,
    network=Network((1, 1, 1), (16, 32, 64)),
    train_images=1400,
    resize=32,
    crop=28,
    first_step=replace(paper.CLOTHING1M_FIRST_STEP, start_epoch=2),
    second_step=replace(paper.CLOTHING1M_SECOND_STEP, learning_rate=0.03),
    time_scale=4,
    seconds_per_iteration=0.07,
    real_noise=replace(paper.CLOTHING1M_PARAMETERS, learning_rate=0.03),
)
CLOTHING1M_PRESETS = {preset.name: preset for preset in (CLOTHING1M_PAPER, CLOTHING1M_DIGITS)}


@dataclass(frozen=True, kw_only=True)
class Clothing1MStudy(Study):
    """The experiments on Clothing1M, whose relabelled images Figures 7 and 8 show.

    Parameters
    ----------
    load : loads the data set.
    classes : the pair of classes that figures show; None: the paper's.
    """

    load: Callable[[], LabelledData] = field()  # which `Study` can do without
    classes: tuple[str, str] | None = None
