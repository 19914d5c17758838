"""The label averaging: at the end of an epoch the labels become the mean of the past epochs'
probabilities."""

import chainer
from chainer import training

from chainer_jo.training.many_ranks import ALONE, Ranks, counts


class LabelUpdate(training.Extension):
    """Updates Y with theta fixed (Section 4.1), at the end of every epoch from ``start`` to
    ``stop``, both included.

    Reports ``recovery``, the share of labels whose arg max is the true class where it is known.

    Parameters
    ----------
    start : t1, the first epoch at whose end the labels are updated (70 in the paper); 0 is the same
        as 1.
    stop : t2, the last one.
    true_labels : (n,) int32, on the device of the labels, negative where not known, for the report
        alone; None: it goes without.
    ranks : those that have the other labels.
    """

    trigger = 1, "epoch"
    priority = training.PRIORITY_WRITER

    def __init__(self, start: int, stop: int, true_labels=None, ranks: Ranks = ALONE) -> None:
        self.start = start
        self.stop = stop
        self.true_labels = true_labels
        self.ranks = ranks

    def __call__(self, trainer: training.Trainer) -> None:
        store = trainer.updater.labels
        store.end_epoch()
        if self.start <= trainer.updater.epoch <= self.stop:
            store.update()
        if self.true_labels is None:
            return
        right, known = self.ranks.sum(counts(store.labels.argmax(axis=-1), self.true_labels))
        if known:
            chainer.report({"recovery": float(right / known)})
