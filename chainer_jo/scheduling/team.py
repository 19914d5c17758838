"""Many ranks that work through runs together, one run at a time: what `Scheduler` does with several
processes that have a run each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.run import Run, Settings
from chainer_jo.experiments.store import RunStore
from chainer_jo.scheduling.scheduler import Event, pending
from chainer_jo.training.extensions import Paused
from chainer_jo.training.many_ranks import Ranks


class Team:
    """The first rank's side; the others call `follow` meanwhile.

    Parameters
    ----------
    store : where runs are kept; a run that another process holds is an error.
    load_data : gives the data set.
    on_event : called for every `Event`.
    """

    def __init__(
        self,
        store: RunStore,
        load_data: Callable,
        settings: Settings,
        ranks: Ranks,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.store = store
        self.load_data = load_data
        self.settings = settings
        self.ranks = ranks
        self.on_event = on_event

    def work(self, experiments: Sequence[Experiment]) -> bool:
        """Brings all experiments to an end; see `Scheduler.work`."""
        while waiting := pending(experiments, self.store):
            experiment = waiting[0]
            with self.store.lock(experiment) as mine:
                if not mine:
                    raise UserError(f"run {experiment.id}: another process is at it")
                result = self.store.result(experiment)  # another process may have ended it by now
                if result is None or self.store.lost_labels(experiment):
                    try:
                        result = self._run(experiment)
                    except Paused:
                        self.on_event(Event(experiment, "paused"))
                        return False
            self.on_event(Event(experiment, result["state"], result))
        return True

    def _run(self, experiment: Experiment) -> dict:
        self.ranks.broadcast((experiment, self.store, self.settings))
        return Run(
            experiment,
            self.load_data(),
            self.store,
            self.settings,
            lambda epoch: self.on_event(Event(experiment, epoch)),
            self.ranks,
        ).finish()


def follow(ranks: Ranks) -> None:
    """Takes part in whatever the first rank runs, until it says that nothing is left."""
    while (run := ranks.broadcast(None)) is not None:
        experiment, store, settings = run
        try:
            Run(experiment, None, store, settings, ranks=ranks).finish()
        except Paused:
            continue
