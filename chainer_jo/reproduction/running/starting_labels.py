"""Final labels of a first step, from which a second step starts. All runs of a results folder use
the same data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method.noisy_split import ImageSelection, as_used
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.store import RunStore


def labels_of(first_step: Experiment, store: RunStore, fingerprint: str) -> np.ndarray:
    """The soft labels (n, c) that a first step on data with this fingerprint ended with.

    Raises UserError if the first step has not finished, or was on other data.
    """
    result, labels = store.result(first_step), store.soft_labels(first_step)
    if result is None or result["state"] != "finished" or labels is None:
        raise UserError(f"labels of {first_step.id}: not there; the first step has to finish first")
    if result["data"] != fingerprint:
        raise UserError(
            f"labels of {first_step.id}: of data with fingerprint {result['data']}, these have "
            f"{fingerprint}; expected the same data; choose another --results folder"
        )
    return labels


def check_results(
    experiments: Sequence[Experiment], store: RunStore, data: LabelledData | None = None
) -> None:
    """Raises UserError for runs that finished on other data than these; None: on two data sets."""
    expected: dict[ImageSelection, str | None] = {}
    for experiment in experiments:
        if result := store.result(experiment):
            trained_on, used = result.get("data"), experiment.data
            if used not in expected:
                expected[used] = as_used(data, used).fingerprint() if data else trained_on
            if trained_on != expected[used]:
                raise UserError(
                    f"run {experiment.id} in {store.root}: of data with fingerprint {trained_on}, "
                    f"{'these' if data else 'others there'} have {expected[used]}; expected runs "
                    "on the same data alone, or another folder for the results"
                )
