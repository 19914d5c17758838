"""Presets of the paper's experiments, as in the paper or smaller in stated ways, and the
experiments themselves (`Study`).

A change makes other runs, with other ids, of which none is committed; another preset is an entry of
`PRESETS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chainer_jo import files
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.data.source import find
from chainer_jo.errors import UserError
from chainer_jo.method.label_sources import SOURCES
from chainer_jo.reproduction.experiments.experiment import (
    Experiment,
    ImageSelection,
    LabelSchedule,
    Network,
    Noise,
    Optimization,
)
from chainer_jo.reproduction.paper import settings as paper
from chainer_jo.reproduction.paper import tables

#: The noise of images that come with noisy labels: kind and rate.
REAL = ("real", 0.0)


@dataclass(frozen=True)
class Preset:
    """A setting of all experiments.

    Parameters
    ----------
    summary : one line that describes it to people.
    reference_data : name of the data set whose results are kept in a folder of the preset's own
        name; results on other data sets go to ``<preset>-<data>``, see `Study.folder`.
    default_data : what ``--data`` is when it is not given, see `chainer_jo.data.source`; None:
        it has to be.
    network : None: ResNet-50, from weights that have to be given.
    first_step, second_step : the paper's schedules and learning rates.
    time_scale : length of every schedule relative to these.
    average : epochs that new labels are averaged over; None: all past ones.
    momentum, weight_decay : of SGD.
    real_noise : alpha, beta and learning rate of the first step where images come with noisy
        labels; None: the labels are right, and noise is put into them.
    trials : trials of Tables 1 to 3, of the figures, and of Tables 6 to 13 ("triple test").
    train_images : training images of a run, to which the paper's numbers of labels are scaled.
    image_shape : (height, width, channels) of the images, where all have the same.
    resize, crop : pixels of images of many sizes, see `ImageSelection`.
    shrink : pixels of the data set, along an edge, that become one.
    exchanged_classes : the two that asymmetric noise exchanges with each other: cat and dog.
    seconds_per_iteration : on one core of a current CPU in ``precision``, before any was timed.
    precision : meaning of ``auto``, on every machine.
    sized_for : claims whose effects it was chosen to show, by their ids in `claims`.
    test_images : number of images that test accuracies are measured on.
    threads : of a run on a CPU, where the network is too small for more; None: all there are.
    """

    name: str
    summary: str
    reference_data: str | None
    default_data: str | None
    network: Network | None
    train_images: int
    image_shape: tuple[int, int, int] | None = (32, 32, 3)
    resize: int | None = None
    crop: int | None = None
    exchanged_classes: tuple[int, int] = (3, 5)
    train_per_class: int | None = None
    test_per_class: int | None = None
    shrink: int | None = None
    first_step: paper.FirstStep = paper.CIFAR_FIRST_STEP
    second_step: paper.StepDecay = paper.CIFAR_SECOND_STEP
    time_scale: float = 1.0
    average: int | None = paper.CIFAR_FIRST_STEP.averaged_epochs
    batch_size: int = paper.CIFAR_SGD.batch_size
    momentum: float = paper.CIFAR_SGD.momentum
    weight_decay: float = paper.CIFAR_SGD.weight_decay
    pad: int = paper.CIFAR_PADDING
    flip: bool = True
    seconds_per_iteration: float = 1.5
    precision: str = "fp32"
    threads: int | None = None
    sized_for: tuple[str, ...] = ()
    test_images: int = 10000
    real_noise: paper.HyperParameters | None = None
    trials: tuple[int, int, int] = (
        paper.COMPARISON_TRIALS,
        paper.SENSITIVITY_TRIALS,
        paper.SENSITIVITY_TRIALS,
    )


PAPER = Preset(
    name="paper",
    summary="exactly the paper: all of CIFAR-10, 200 + 120 epochs",
    reference_data="cifar10",
    default_data="cifar10",
    network=Network(),
    train_images=45000,
)
HALF = Preset(
    name="half",
    summary="all of CIFAR-10 at half the resolution, flipped but not cropped, a network of six "
    "units, schedules a quarter as long, labels averaged over 5 epochs",
    reference_data="cifar10-jpeg",
    default_data="cifar10",
    network=Network((2, 2, 2)),
    train_images=45000,
    image_shape=(16, 16, 3),
    shrink=2,
    time_scale=0.25,
    average=5,
    pad=0,
    trials=(3, 3, 2),
    seconds_per_iteration=0.065,
    precision="mixed",
    sized_for=(
        "training-loss-misleads",
        "low-rate-drops",
        "every-noise-is-fitted",
        "symmetric-cross-entropy-drops",
        "asymmetric-cross-entropy-drops",
    ),
)
DIGITS = Preset(
    name="digits",
    summary="scikit-learn's 8x8 digits in batches of 64, a network of two units, schedules 0.35 as "
    "long, labels averaged over 5 epochs",
    reference_data="digits",
    default_data="digits",
    network=Network((1, 1), (16, 48)),
    train_images=1348,
    image_shape=(8, 8, 1),
    exchanged_classes=(5, 6),
    time_scale=0.35,
    average=5,
    batch_size=64,
    pad=1,
    flip=False,
    trials=(3, 2, 1),
    seconds_per_iteration=0.0065,
    threads=1,
    sized_for=("every-noise-is-fitted",),
    test_images=299,
)
PRESETS = {preset.name: preset for preset in (PAPER, HALF, DIGITS)}


def pretrained(weights: str | None) -> Network:
    """The ResNet-50 that starts from a file of weights. Raises UserError if there is none."""
    from chainer_jo.method.resnet50 import variant_of  # loads Chainer, which takes a second

    weights = weights or "(not given)"
    return Network((), (), weights=f"{variant_of(weights)}-{files.digest(weights)}")


@dataclass(frozen=True)
class Study:
    """The paper's experiments in one preset, on one data set, from which the scripts build their
    tables.

    Every method gives an `Experiment`. Noise is ``symmetric`` (SN-CIFAR), ``asymmetric``
    (AN-CIFAR), ``pseudo`` (PL-CIFAR), ``real`` (Clothing1M) or another name in `SOURCES`;
    noise rates, epochs and numbers of labels are given as the paper prints them and scaled here.

    Parameters
    ----------
    data : name of the data set.
    trials : trials of every cell; None: as many as the preset has.
    seed : seed of trial 0; trial t has ``seed + t``.
    precision : None: the preset's.
    noise_rates : the only ones that tables over noise rates are made of; None: the paper's.
    features : name of the features that pseudo labels are clustered from, as recorded with the
        run; None: there are no pseudo labels.
    load : loads the data set; None: by the name.
    """

    preset: Preset
    data: str
    trials: int | None = None
    seed: int = 0
    precision: str | None = None
    noise_rates: tuple[float, ...] | None = None
    features: str | None = None
    load: Callable[[], LabelledData] | None = None

    @property
    def loader(self) -> Callable[[], LabelledData]:
        """Function that loads the data set; can be pickled."""
        return self.load or find(self.data).load

    def comparison_trials(self) -> range:
        """The trials of Tables 1 to 3."""
        return range(self.trials or self.preset.trials[0])

    def figure_trials(self) -> range:
        """The trials of the figures' curves."""
        return range(self.trials or self.preset.trials[1])

    def sensitivity_trials(self) -> range:
        """The trials of Tables 6 to 13."""
        return range(self.trials or self.preset.trials[2])

    @property
    def of_the_preset(self) -> bool:
        """True for the images that the preset is for."""
        return self.data in (self.preset.reference_data, self.preset.default_data)

    @property
    def sized_for(self) -> tuple[str, ...]:
        """Claims whose effects the preset was chosen to show, on the images it was chosen on."""
        return self.preset.sized_for if self.of_the_preset else ()

    def epochs(self, paper_epochs: int) -> int:
        """A length of the paper's, in this preset's epochs: at least 1."""
        return max(1, round(paper_epochs * self.preset.time_scale))

    def noise(self, kind: str, rate: float = 0.0) -> Noise:
        """The noise of a run. Raises UserError for pseudo labels without features."""
        return SOURCES[kind].describe(kind, rate, self.features)

    def second_step_schedule(self) -> tuple[int, tuple[int, ...]]:
        """Epochs of the second step, and after which the learning rate is divided by 10."""
        schedule = self._second_step()
        return schedule.epochs, schedule.drops

    def baseline(self, objective: str, kind: str, rate: float, trial: int) -> Experiment:
        """A method of Tables 1 to 3 that trains on the noisy labels, in the protocol of the second
        step."""
        return self._experiment(objective, self.noise(kind, rate), trial, self._second_step())

    def joint(self, kind: str, rate: float, trial: int, **first_step) -> Experiment:
        """The second step on the labels of the first step; the keywords are `first_step`'s."""
        first = self.first_step(kind, rate, trial, **first_step)
        return self._experiment(
            "cross_entropy", first.noise, trial, self._second_step(), first_step=first
        )

    def first_step(
        self,
        kind: str,
        rate: float,
        trial: int,
        *,
        start_epoch: int | None = None,
        stop_epoch: int | None = None,
        epochs: int | None = None,
        rule: str = "soft",
        top: int | None = None,
        average: int | None = None,
        objective: str = "joint",
        **parameters: float | None,
    ) -> Experiment:
        """The first step of the method; what is not given is as in the paper for this noise, as are
        hyper parameters other than the ``parameters`` alpha, beta and learning_rate.

        With ``stop_epoch`` (t2) the first step ends there: nothing after the last update reaches
        the second step.
        """
        preset, schedule = self.preset, self.preset.first_step
        given = {name: value for name, value in parameters.items() if value is not None}
        if len(given) < 3:
            try:
                usual = preset.real_noise or paper.hyper_parameters(kind, rate)
            except KeyError:
                known = sorted({column for _, column in tables.TABLE5.cells})
                raise UserError(f"noise rate {rate}: expected one of Table 5, {known}") from None
            given = {**vars(usual), **given}
        length = epochs or stop_epoch or schedule.epochs
        start_epoch = schedule.start_epoch if start_epoch is None else start_epoch
        relabelling = LabelSchedule(
            start=self.epochs(start_epoch) if start_epoch else 0,
            stop=self.epochs(length),
            rule=rule,
            top=top and self.labels(top),
            average=average or preset.average,
        )
        optimization = self._sgd(length, given.pop("learning_rate"))
        noise = self.noise(kind, rate)
        return self._experiment(
            objective, noise, trial, optimization, relabelling=relabelling, **given
        )

    def plain(
        self,
        kind: str,
        rate: float,
        trial: int,
        learning_rate: float,
        epochs: int,
        drops: tuple[int, ...] = (),
    ) -> Experiment:
        """Cross entropy on the noisy labels with the schedules of Figures 2 and 3."""
        schedule = self._sgd(epochs, learning_rate, drops)
        return self._experiment("cross_entropy", self.noise(kind, rate), trial, schedule)

    def labels(self, paper_labels: int) -> int:
        """A number of labels updated per epoch: the same share of all labels over the whole
        schedule, but at most all of them in each epoch."""
        images = self.preset.train_images
        share = paper_labels / PAPER.train_images
        return min(images, max(1, round(share * images / self.preset.time_scale)))

    def _second_step(self) -> Optimization:
        step = self.preset.second_step
        return self._sgd(step.epochs, step.learning_rate, step.drops)

    def _sgd(self, epochs: int, learning_rate: float, drops: tuple[int, ...] = ()) -> Optimization:
        preset = self.preset
        return Optimization(
            self.epochs(epochs),
            learning_rate,
            tuple(self.epochs(drop) for drop in drops),
            batch_size=preset.batch_size,
            momentum=preset.momentum,
            weight_decay=preset.weight_decay,
            pad=preset.pad,
            flip=preset.flip,
        )

    def _experiment(
        self, objective: str, noise: Noise, trial: int, optimization: Optimization, **fields
    ) -> Experiment:
        preset = self.preset
        data = ImageSelection(
            self.data,
            train_per_class=preset.train_per_class,
            test_per_class=preset.test_per_class,
            resize=preset.resize,
            crop=preset.crop,
            shrink=preset.shrink,
        )
        return Experiment(
            data,
            noise,
            preset.network or pretrained(None),
            optimization,
            objective,
            self.seed + trial,
            precision=self.precision or self.preset.precision,
            **fields,
        )

    @property
    def folder(self) -> str:
        """Name of the folder for results and figures, which tells data sets and precisions
        apart."""
        preset, names = self.preset, [self.preset.name]
        if self.data != preset.reference_data:
            names.append(self.data)
        if self.precision not in (None, preset.precision):
            names.append(self.precision)
        return "-".join(names)
