"""The experiments that correct the labels of people's own images: the paper's two steps, as long
and as large as the images call for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chainer_jo.experiments.experiment import (
    Data,
    Experiment,
    Network,
    Noise,
    Optimization,
    Relabelling,
)
from chainer_jo.experiments.presets import pretrained
from chainer_jo.paper import settings as paper
from chainer_jo.paper.settings import HyperParameters

#: Length of the schedules of small images, relative to the paper's: that of the preset ``digits``.
TIME_SCALE = 0.35
#: New labels of a shortened first step are averaged over this part of it, and over at most the
#: paper's ten epochs: 5 of 70, as in the presets.
AVERAGED = 1 / 14
#: Parts that images are divided into, each classified by a network trained on the others.
FOLDS = 3
#: A batch is a power of two, up to the paper's, that leaves an epoch so many; but not smaller than
#: that, for the statistics of batch normalisation.
FEWEST_BATCHES, SMALLEST_BATCH = 20, 16
#: Units and widths by the number of training images from which they are taken: the paper's, those
#: of the preset ``half``, and for few images a unit a stage, as in ``digits``, and half the widths.
SIZES = (
    (30_000, (5, 5, 5), (32, 64, 128)),
    (10_000, (2, 2, 2), (32, 64, 128)),
    (0, (1, 1, 1), (16, 32, 64)),
)
#: Images of fewer pixels are halved once instead of twice, as in the preset ``digits``: after that
#: there would be less than 4 x 4 left.
HALVED_ONCE_BELOW = 16
#: Images that ResNet-50 is given: resized to so many pixels, cut to the centre (Section 5.2).
RESIZE, CROP = 256, 224


@dataclass(frozen=True)
class RelabelStudy:
    """The runs on one data set.

    Parameters
    ----------
    data : its name, and how its images are resized.
    network : what is trained.
    epochs, start, average : of the first step; see `Relabelling`.
    second_step_sgd : how the second step is trained; the first has another learning rate.
    parameters : alpha, beta and the learning rate of the first step.
    prior : None: the distribution of the given labels; ``"uniform"``.
    """

    data: Data
    network: Network
    epochs: int
    start: int
    average: int | None
    second_step_sgd: Optimization
    parameters: HyperParameters
    seed: int = 0
    precision: str = "fp32"
    prior: str | None = None

    def steps(self, left_out: int) -> tuple[Experiment, Experiment]:
        """Training with label updates (Section 4.1), and afresh on the labels that this ends with,
        both without one of `FOLDS` parts."""
        chosen = self.parameters
        sgd = replace(
            self.second_step_sgd, epochs=self.epochs, learning_rate=chosen.learning_rate, drops=()
        )
        first = self._experiment(
            left_out,
            "joint",
            sgd,
            alpha=chosen.alpha,
            beta=chosen.beta,
            relabelling=Relabelling(self.start, self.epochs, average=self.average),
        )
        second = self._experiment(left_out, "cross_entropy", self.second_step_sgd, first_step=first)
        return first, second

    def baseline(self, left_out: int) -> Experiment:
        """The second step on the labels as given: what the method is held against."""
        return self._experiment(left_out, "cross_entropy", self.second_step_sgd)

    def _experiment(
        self, left_out: int, objective: str, optimization: Optimization, **fields
    ) -> Experiment:
        return Experiment(
            replace(self.data, left_out=left_out),
            Noise("real"),
            self.network,
            optimization,
            objective,
            self.seed,
            precision=self.precision,
            prior=self.prior,
            **fields,
        )


def small_images(
    name: str, side: int, number: int, epochs: int | None = None, flip: bool = False, **fields
) -> RelabelStudy:
    """The paper's method on CIFAR-10, for so many training images of ``side`` x ``side`` pixels.

    Noise is unknown, so parameters are what the paper has for the middle of its range, half of the
    labels.

    Parameters
    ----------
    epochs : of the first step; the other lengths keep their relation to it.
    flip : whether images are mirrored in training, as the paper's are. A mirrored digit is none, so
        this has to be asked for.
    fields : of `RelabelStudy`.
    """
    first, second, sgd = paper.CIFAR_FIRST_STEP, paper.CIFAR_SECOND_STEP, paper.CIFAR_SGD
    scale = epochs / first.epochs if epochs else TIME_SCALE

    def scaled(length: int) -> int:
        return max(1, round(scale * length))

    units, widths = next(size[1:] for size in SIZES if number >= size[0])
    if side < HALVED_ONCE_BELOW:
        units, widths = units[:2], (widths[0], 3 * widths[0])
    optimization = Optimization(
        scaled(second.epochs),
        second.learning_rate,
        tuple(map(scaled, second.drops)),
        batch_size(number, sgd.batch_size),
        sgd.momentum,
        sgd.weight_decay,
        pad=side // 8,
        flip=flip,
    )
    return RelabelStudy(
        Data(name, resize=side, crop=side),
        Network(units, widths),
        scaled(first.epochs),
        scaled(first.start_epoch),
        max(1, min(round(AVERAGED * scaled(first.epochs)), first.averaged_epochs)),
        optimization,
        paper.hyper_parameters("symmetric", 0.5),
        **fields,
    )


def large_images(
    name: str, weights: str, number: int, epochs: int | None = None, **fields
) -> RelabelStudy:
    """The paper's method on Clothing1M: ResNet-50 from a file of ``weights``, for so many training
    images.

    Parameters are those of `small_images`. Raises UserError if there is no such file.
    """
    first, second, sgd = (
        paper.CLOTHING1M_FIRST_STEP,
        paper.CLOTHING1M_SECOND_STEP,
        paper.CLOTHING1M_SGD,
    )
    scale = epochs / first.epochs if epochs else 1
    optimization = Optimization(
        max(1, round(scale * second.epochs)),
        second.learning_rate,
        tuple(max(1, round(scale * drop)) for drop in second.drops),
        batch_size(number, sgd.batch_size),
        sgd.momentum,
        sgd.weight_decay,
        pad=0,
        flip=False,
    )
    return RelabelStudy(
        Data(name, resize=RESIZE, crop=CROP),
        pretrained(weights),
        epochs or first.epochs,
        first.start_epoch,
        first.averaged_epochs,
        optimization,
        paper.CLOTHING1M_PARAMETERS,
        **fields,
    )


def batch_size(number: int, largest: int) -> int:
    """Images per batch where so many are trained on."""
    batch = largest
    while batch > SMALLEST_BATCH and number < FEWEST_BATCHES * batch:
        batch //= 2
    return min(batch, number)
