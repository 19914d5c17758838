"""Computation of runs in this process, one at a time, on data that are loaded once."""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Callable

from chainer_jo.data.labelled_data import LabelledData
from chainer_jo.devices import device_of
from chainer_jo.engine.backend import choose_backend
from chainer_jo.engine.cuda import cuda_source, cudnn_kernels, kernels
from chainer_jo.errors import UserError
from chainer_jo.method.extensions import Paused
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.running.run import Computation, Run
from chainer_jo.reproduction.running.store import RunStore

#: The data sets of this process, by the pickled function that loads them.
loaded: dict[bytes, LabelledData] = {}


def loaded_by(load_data: bytes) -> LabelledData:
    """The data set of a pickled loader, loaded at this process's first request."""
    if load_data not in loaded:
        logging.disable(logging.WARNING)  # the parent process has shown these warnings
        try:
            loaded[load_data] = pickle.loads(load_data)()
        finally:
            logging.disable(logging.NOTSET)
    return loaded[load_data]


def warm_up(computation: Computation, precision: str) -> None:
    """Loads the libraries of a GPU, and compiles the kernels of every run."""
    (device := device_of(computation.device)).use()
    choose_backend(device, precision, computation.engine)
    for source in (kernels.SOURCE, cudnn_kernels.SOURCE):
        cuda_source.module(source).compile()


def execute(
    experiment: Experiment,
    store: RunStore,
    data: bytes | LabelledData,
    computation: Computation,
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

    Raises UserError if the run cannot be computed: its message says why.
    """
    with store.lock(experiment) as mine:
        if not mine:
            return "busy", None
        result = store.result(experiment)
        if result is None or store.lost_labels(experiment):
            store.reset(experiment)
            try:
                gc.collect()  # frees the last run's arrays, whose objects refer to each other
                data = loaded_by(data) if isinstance(data, bytes) else data
                result = Run(experiment, data, store, computation, on_epoch).finish()
            except Paused:
                return "paused", None
            except MemoryError as error:  # CuPy's, too
                raise UserError(
                    f"run {experiment.id} on {computation.device}: out of memory ({error}); "
                    "--jobs 1 computes one run at a time"
                ) from None
    return result["state"], result
