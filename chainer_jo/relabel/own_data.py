"""People's own images as runs take them, divided into parts."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from chainer_jo.datasets.labelled_data import UNKNOWN, Labelled, LabelledData
from chainer_jo.relabel import labelled_images
from chainer_jo.relabel.decoded_images import decoded
from chainer_jo.relabel.label_table import USUAL, TableForm
from chainer_jo.relabel.labelled_images import LabelledSets

#: What the data are called in descriptions of runs: they stay the same data when they are moved.
NAME = "own-images"


@dataclass(frozen=True)
class OwnData:
    """What was named on the command line. It travels to other processes; what it names does not.

    Parameters
    ----------
    data, validation, test : see `labelled_images.load`.
    form : of tables.
    """

    data: str
    validation: str | None
    test: str | None
    form: TableForm = USUAL

    @property
    def sets(self) -> LabelledSets:
        """The images. Raises UserError as `labelled_images.load` does."""
        return _sets(self.data, self.validation, self.test, self.form)

    def load(self, side: int | None, parts: np.ndarray) -> LabelledData:
        """What runs train on. True labels, and sets whose labels are right, stay out of it.

        Parameters
        ----------
        side : all images are resized to so many pixels, and decoded at once; None: they stay on
            disk.
        parts : the fold (n,) of each image.
        """
        images = self.sets.train
        whole = images.labelled(None if side is None else decoded(images, side))
        train = Labelled(whole.images, whole.labels, np.full_like(whole.labels, UNKNOWN))
        nothing = train.take(np.arange(0))
        return LabelledData(NAME, self.sets.class_names, train, nothing, None, parts)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What tells the data from others, by the use of each set."""
        sets = {use: getattr(self.sets, use) for use in ("train", "validation", "test")}
        return {use: images.fingerprint for use, images in sets.items() if images}


@functools.cache  # a million lines take seconds to parse, and are asked for often
def _sets(data: str, validation: str | None, test: str | None, form: TableForm) -> LabelledSets:
    return labelled_images.load(data, validation, test, form)
