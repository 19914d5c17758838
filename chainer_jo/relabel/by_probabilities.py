"""Relabelling by probabilities that any model has given the images: nothing is trained."""

from __future__ import annotations

import argparse

from chainer_jo.errors import UserError
from chainer_jo.relabel.corrected_labels import CorrectedLabels
from chainer_jo.relabel.feature_table import read_rows
from chainer_jo.relabel.label_errors import find_label_errors
from chainer_jo.relabel.outcome import Outcome


class ByProbabilities:
    """One invocation."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.images = images = flags.own.sets.train
        file, classes = flags.probabilities, images.class_names
        self.probabilities, names = read_rows(file, images, "probabilities")
        names = classes if names is None else names
        width = self.probabilities.shape[1]
        if sorted(names) != sorted(classes) or width != len(classes):
            raise UserError(
                f"probabilities {file!r}: {width} columns for classes {', '.join(names[:5])}, "
                f"expected one for each of the {len(classes)} of the labels; an array "
                "'class_names' says their order"
            )
        self.probabilities = self.probabilities[:, [names.index(name) for name in classes]]

    @property
    def about(self) -> dict[str, str]:
        """How it is computed."""
        return {"images": "by probabilities that came in; no network is trained"}

    def plan(self) -> None:
        """Says what would be run."""
        print("nothing is trained")

    def work(self) -> Outcome:
        """Everything."""
        images = self.images
        errors = find_label_errors(self.probabilities, images.labels, images.class_names)
        return Outcome(CorrectedLabels(images, errors), None, [], self.about)
