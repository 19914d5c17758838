"""Many ranks that work through runs together, one run at a time: what `Scheduler` does with several
processes that have a run each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chainer_jo.datasets import ImageData
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Run, Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.scheduling.scheduler import Event, pending, tidy
from chainer_jo.scheduling.worker import execute
from chainer_jo.training.extensions import Paused
from chainer_jo.training.many_ranks import Ranks


@dataclass
class Team:
    """The first rank's side; the others call `follow` meanwhile.

    Parameters
    ----------
    store : where runs are kept; a run that another process holds is an error.
    load_data : gives the data set.
    on_event : called for every `Event`.
    """

    store: RunStore
    load_data: Callable[[], ImageData | LabelledData]
    settings: Settings
    ranks: Ranks
    on_event: Callable[[Event], None] = lambda event: None

    def work(self, experiments: Sequence[Experiment]) -> bool:
        """Brings all experiments to an end; see `Scheduler.work`."""

        def show_epoch(run: Run) -> None:
            self.on_event(Event(run.experiment, run.updater.epoch))

        tidy(experiments, self.store)
        data = self.load_data()
        while waiting := pending(experiments, self.store):
            run = waiting[0]
            state, result = execute(run, self.store, data, self.settings, show_epoch, self.ranks)
            if state == "busy":
                raise UserError(f"run {run.id}: another process is at it")
            self.on_event(Event(run, state, result))
            if state == "paused":
                return False
        return True


def follow(ranks: Ranks) -> None:
    """Takes part in whatever the first rank runs, until it says that nothing is left."""
    while (run := ranks.broadcast(None)) is not None:
        experiment, store, settings = run
        try:
            Run(experiment, None, store, settings, ranks=ranks).finish()
        except Paused:
            continue
