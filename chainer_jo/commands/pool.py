"""Where runs are computed: on this machine, or on the workers of a Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable

from chainer_jo.commands.suite import Options
from chainer_jo.errors import UserError
from chainer_jo.experiments.run import Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.scheduling.local_pool import LocalPool
from chainer_jo.scheduling.scheduler import Pool


def make_pool(options: Options, store: RunStore, load_data: Callable, settings: Settings) -> Pool:
    """The pool that the flags ask for. Raises UserError if Dask is wanted and missing."""
    if options.cluster is None:
        return LocalPool(store, load_data, settings, options.jobs, options.threads)
    try:
        from chainer_jo.scheduling.cluster import Cluster
    except ImportError as error:
        raise UserError(
            f"--cluster needs Dask ({error}): pip install 'chainer_jo[cluster]'"
        ) from None
    return Cluster(options.cluster, store, load_data, settings, options.threads)
