"""Computation of runs in this process, one at a time, on data that are loaded once."""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Callable

from chainer_jo.data.image_data import ImageData
from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.method.extensions import Paused
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.run import Run, Settings
from chainer_jo.runs.store import RunStore

#: The data sets of this process, by the pickled function that loads them; `cluster.prepare` adds
#: data that were sent.
loaded: dict[bytes, ImageData | LabelledData] = {}


def loaded_by(load_data: bytes) -> ImageData | LabelledData:
    """The data set of a pickled loader, loaded at this process's first request."""
    if load_data not in loaded:
        logging.disable(logging.WARNING)  # who hands out the runs has loaded them too, and said it
        try:
            loaded[load_data] = pickle.loads(load_data)()
        finally:
            logging.disable(logging.NOTSET)
    return loaded[load_data]


def execute(
    experiment: Experiment,
    store: RunStore,
    data: bytes | ImageData | LabelledData,
    settings: Settings,
    on_epoch: Callable[[Run], None] = lambda run: None,
) -> tuple[str, dict | None]:
    """Computes a run to its end, or to its deadline, unless another process computes it.

    Parameters
    ----------
    data : the data set that all runs share, or its pickled loader.
    on_epoch : called at the end of each epoch.

    Returns
    -------
    state : ``finished``, ``diverged``, ``paused``, or ``busy`` if another process computes it.
    result : of a finished or diverged run, else None.

    Raises
    ------
    UserError
        if the run cannot be computed: its message says why.
    """
    if isinstance(data, bytes):
        data = loaded_by(data)
    with store.lock(experiment) as mine:
        if not mine:
            return "busy", None
        result = store.result(experiment)
        if result is None or store.lost_labels(experiment):
            gc.collect()  # frees the arrays of the last run, whose objects refer to each other
            store.begin_again(experiment)
            try:
                result = Run(experiment, data, store, settings, on_epoch).finish()
            except Paused:
                return "paused", None
            except MemoryError as error:  # CuPy's, too
                raise UserError(
                    f"run {experiment.id} on {settings.device}: {error}, expected room for all "
                    "runs at a time; --jobs 1 has one"
                ) from None
    return result["state"], result
