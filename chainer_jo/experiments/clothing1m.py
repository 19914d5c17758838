"""The experiments of Table 3: what is run on Clothing1M, and on the small stand-in for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainer_jo import files
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.experiments.experiment import (
    Data,
    Experiment,
    Network,
    Noise,
    Optimization,
    Relabelling,
)
from chainer_jo.links.resnet50_weights import variant_of
from chainer_jo.paper import settings as paper

STANDIN = "clothing1m-standin"


@dataclass(frozen=True)
class Clothing1MPreset:
    """A setting of the Clothing1M experiments.

    Parameters
    ----------
    summary : what it is, in one line, for people.
    default_data : what ``--data`` is when it is not given; None: it has to be.
    network : None: ResNet-50, from weights that have to be given.
    resize, crop : in pixels, see `Data`.
    first_rate, second_rate : learning rates that the two steps begin with.
    alpha, beta : of eq. (5).
    train_images : about how many there are; with the seconds per iteration on one core of a
        current CPU what estimates of a run's cost start from.
    time_scale : length of both schedules relative to the paper's.
    start_epoch : the first at whose end labels are updated.
    trials : of every cell.
    precision : what ``auto`` means.
    """

    name: str
    summary: str
    default_data: str | None
    network: Network | None
    resize: int
    crop: int
    first_rate: float
    second_rate: float
    alpha: float
    beta: float
    train_images: int
    seconds_per_iteration: float
    time_scale: int = 1
    start_epoch: int = paper.CLOTHING1M_FIRST_STEP.start_epoch
    batch_size: int = paper.CLOTHING1M_SGD.batch_size
    trials: int = 1
    precision: str = "fp32"


PAPER = Clothing1MPreset(
    name="paper",
    summary="exactly the paper: ResNet-50, 10 + 10 epochs",
    default_data=None,
    network=None,
    resize=256,
    crop=224,
    first_rate=paper.CLOTHING1M_PARAMETERS.learning_rate,
    second_rate=paper.CLOTHING1M_SECOND_STEP.learning_rate,
    alpha=paper.CLOTHING1M_PARAMETERS.alpha,
    beta=paper.CLOTHING1M_PARAMETERS.beta,
    train_images=1_000_000,
    seconds_per_iteration=107.0,
)
DIGITS = Clothing1MPreset(
    name="digits",
    summary="14 classes of real digits and drawn shapes, a small network from scratch, four times "
    "the epochs, labels from epoch 8 on: an untrained network has nothing to say before",
    default_data=STANDIN,
    network=Network((1, 1, 1), (16, 32, 64)),
    resize=32,
    crop=28,
    first_rate=0.03,
    second_rate=0.03,
    alpha=PAPER.alpha,
    beta=PAPER.beta,
    train_images=1400,
    seconds_per_iteration=0.07,
    time_scale=4,
    start_epoch=8,
)
PRESETS = {preset.name: preset for preset in (PAPER, DIGITS)}


@dataclass(frozen=True)
class Clothing1MStudy:
    """The experiments in one preset, on one data set.

    Parameters
    ----------
    data : name of the data set.
    load : gives the data set; what shows relabelled images calls it.
    weights : file of ImageNet weights for ResNet-50, where the preset has no network of its own.
    trials : of every cell; None: as many as the preset has.
    seed : seed of trial 0; trial t has ``seed + t``.
    classes : the pair whose relabelled images figures show; None: the figures' own.

    Raises
    ------
    UserError
        if the weights are needed and not there.
    """

    preset: Clothing1MPreset
    data: str
    load: Callable[[], LabelledData]
    weights: str | None = None
    trials: int | None = None
    seed: int = 0
    precision: str = "fp32"
    classes: tuple[str, str] | None = None

    @property
    def folder(self) -> str:
        """Name of the folder for results and figures."""
        parts = [self.preset.name, self.data]
        return "-".join(parts + [self.precision] * (self.precision != self.preset.precision))

    def comparison_trials(self) -> range:
        """The trials of Table 3."""
        return range(self.trials or self.preset.trials)

    def baseline(self, trial: int = 0) -> Experiment:
        """Row 3: the second step, on the noisy labels."""
        return self._experiment("cross_entropy", self._second_step(), trial)

    def first_step(self, trial: int = 0) -> Experiment:
        """Labels from epoch 1 on, as the mean over all past epochs (Section 5.2)."""
        preset, step = self.preset, paper.CLOTHING1M_FIRST_STEP
        epochs = step.epochs * preset.time_scale
        return self._experiment(
            "joint",
            self._sgd(epochs, preset.first_rate),
            trial,
            alpha=preset.alpha,
            beta=preset.beta,
            relabelling=Relabelling(preset.start_epoch, epochs, average=step.averaged_epochs),
        )

    def joint(self, trial: int = 0) -> Experiment:
        """Row 4: the second step, on the labels of the first."""
        first_step = self.first_step(trial)
        return self._experiment("cross_entropy", self._second_step(), trial, first_step=first_step)

    def _second_step(self) -> Optimization:
        preset, step = self.preset, paper.CLOTHING1M_SECOND_STEP
        drops = tuple(drop * preset.time_scale for drop in step.drops)
        return self._sgd(step.epochs * preset.time_scale, preset.second_rate, drops)

    def _sgd(self, epochs: int, rate: float, drops: tuple[int, ...] = ()) -> Optimization:
        preset, sgd = self.preset, paper.CLOTHING1M_SGD
        return Optimization(
            epochs,
            rate,
            drops,
            preset.batch_size,
            sgd.momentum,
            sgd.weight_decay,
            pad=0,
            flip=False,
        )

    def _experiment(
        self, objective: str, optimization: Optimization, trial: int, **fields
    ) -> Experiment:
        preset = self.preset
        return Experiment(
            Data(self.data, resize=preset.resize, crop=preset.crop),
            Noise("real"),
            preset.network or _resnet50(self.weights),
            optimization,
            objective,
            self.seed + trial,
            precision=self.precision,
            **fields,
        )


def _resnet50(weights: str | None) -> Network:
    variant = variant_of(weights or "(not given)")
    return Network((), (), weights=f"{variant}-{files.digest(weights)}")
