"""People's own images as runs take them: what is trained on, what is held back."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from chainer_jo import seeds
from chainer_jo.datasets import splits
from chainer_jo.datasets.labelled_data import UNKNOWN, Labelled, LabelledData
from chainer_jo.relabel import labelled_images
from chainer_jo.relabel.decoded_images import decoded
from chainer_jo.relabel.label_table import USUAL, TableForm
from chainer_jo.relabel.labelled_images import LabelledImages, LabelledSets

#: What the data are called in descriptions of runs: they stay the same data when they are moved.
NAME = "own-images"


@dataclass(frozen=True)
class OwnData:
    """What was named on the command line. It travels to other processes; what it names does not.

    Parameters
    ----------
    data, validation, test : see `labelled_images.load`.
    seed : of the choice of what is held back.
    form : of tables.
    """

    data: str
    validation: str | None
    test: str | None
    seed: int
    form: TableForm = USUAL

    @property
    def sets(self) -> LabelledSets:
        """The images. Raises UserError as `labelled_images.load` does."""
        return _sets(self.data, self.validation, self.test, self.form)

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the images whose labels are corrected: those that are trained on, and those
        that are held back, a tenth, unless there is a validation set.

        Raises UserError as `splits.hold_back` does.
        """
        images = self.sets.train
        if self.sets.validation is not None:
            return np.arange(len(images)), np.arange(0)
        rng = seeds.generator(self.seed, "split")
        return splits.hold_back(images.labels, len(images.class_names), rng)

    def load(self, side: int | None) -> LabelledData:
        """The data set of the runs. True labels of what is trained on stay out of it.

        Parameters
        ----------
        side : all images are resized to so many pixels, and decoded at once; None: they stay on
            disk.
        """
        sets, (trained_on, held_back) = self.sets, self.rows
        train = _labelled(sets.train, side)
        return LabelledData(
            NAME,
            sets.class_names,
            train.take(trained_on),
            _labelled(sets.validation, side) if sets.validation else train.take(held_back),
            _labelled(sets.test, side) if sets.test else None,
        )

    @property
    def fingerprints(self) -> dict[str, str]:
        """What tells the data from others, by the use of each set."""
        sets = {use: getattr(self.sets, use) for use in ("train", "validation", "test")}
        return {use: images.fingerprint for use, images in sets.items() if images}


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _sets(data: str, validation: str | None, test: str | None, form: TableForm) -> LabelledSets:
    return labelled_images.load(data, validation, test, form)


def _labelled(images: LabelledImages, side: int | None) -> Labelled:
    whole = images.labelled(None if side is None else decoded(images, side))
    return Labelled(whole.images, whole.labels, np.full_like(whole.labels, UNKNOWN))
