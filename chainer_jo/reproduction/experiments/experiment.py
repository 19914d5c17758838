"""Description of one training run: everything that determines its result, and nothing else."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass

from chainer_jo import files
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.engine.interface import PRECISIONS
from chainer_jo.errors import UserError
from chainer_jo.method.label_sources import LabelFiles, Noise
from chainer_jo.method.noisy_split import ImageSelection, NoisySplit
from chainer_jo.method.optimization import Optimization


@dataclass(frozen=True)
class Network:
    """Units and filters of each stage of the `PreActResNet`, or the `ResNet50` that starts from
    ``weights``.

    ``weights``: variant and digest of the file of pretrained weights.
    """

    units: tuple[int, ...] = (5, 5, 5)
    widths: tuple[int, ...] = (32, 64, 128)
    weights: str | None = None


@dataclass(frozen=True)
class LabelSchedule:
    """Schedule and rule of the label updates: t1, t2, rule, and epochs averaged (see
    `SoftLabels`)."""

    start: int
    stop: int
    rule: str = "soft"
    top: int | None = None
    average: int | None = None


@dataclass(frozen=True)
class Experiment:
    """One training run.

    Parameters
    ----------
    objective : ``cross_entropy``, ``joint`` (eq. 5, with alpha and beta), ``forward``, ``cnn_crf``,
        or another name in `OBJECTIVES`.
    relabelling : of the first step of the method, in which the labels are updated; else None.
    first_step : of a second step, the run whose final labels it trains on from scratch; else None.
    seed : the trial; split and noise depend on it alone, so that runs of one trial share them.
    """

    data: ImageSelection
    noise: Noise
    network: Network
    optimization: Optimization
    objective: str
    seed: int
    alpha: float = 0.0
    beta: float = 0.0
    relabelling: LabelSchedule | None = None
    first_step: Experiment | None = None
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise UserError(
                f"precision {self.precision!r}: expected one of {', '.join(PRECISIONS)}"
            )

    @property
    def kind(self) -> str:
        """``first_step``, ``second_step``, or the objective of a baseline."""
        if self.relabelling:
            return "first_step"
        return "second_step" if self.first_step else self.objective

    @functools.cached_property
    def id(self) -> str:
        """Readable and unique: kind, noise, seed, and a digest of the whole description."""
        digest = files.json_digest(self.to_dict())[:10]
        return f"{self.kind.replace('_', '-')}-{self.noise.short}-s{self.seed}-{digest}"

    def split(self, data: LabelledData, given: LabelFiles | None = None) -> NoisySplit:
        """The images and labels of the run; ``given`` are files that labels come from."""
        return NoisySplit(self.data, self.noise, self.seed, data, given)

    def to_dict(self) -> dict:
        """The description as JSON values; fields that say nothing (None) are left out."""
        return _without_none(dataclasses.asdict(self))

    @staticmethod
    def from_dict(description: dict) -> Experiment:
        """The inverse of `to_dict`. Raises UserError for unknown or missing fields."""
        return _build(Experiment, description)


def _without_none(value):
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return list(value) if isinstance(value, tuple) else value


def _build(cls, description):
    """A dataclass, with dataclasses within, from JSON values."""
    if not isinstance(description, dict):
        raise UserError(f"description {description!r}: expected the fields of {cls.__name__}")
    hints = typing.get_type_hints(cls)
    fields = {}
    for name, value in description.items():
        inner = hints.get(name)
        if isinstance(inner, types.UnionType):
            inner = typing.get_args(inner)[0]
        if dataclasses.is_dataclass(inner):
            value = _build(inner, value)
        elif isinstance(value, list):
            value = tuple(value)
        fields[name] = value
    try:
        return cls(**fields)
    except TypeError as error:
        raise UserError(f"description of a run: {error}") from None
