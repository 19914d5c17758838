"""relabelled.html: a page to look through every image that the first step relabelled."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote

import numpy as np

from chainer_jo import files
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.report.relabelled import LOST, Relabelled, drawn_for
from chainer_jo.report.template import filled

#: Bytes: if the images take no more, they are in the page itself; otherwise the page links to them.
EMBEDDED = 8 << 20


@dataclass(frozen=True)
class RelabelledPage:
    """One file with all relabelled images by pair of classes, the most probable first.

    Small sets of images are in the page, so that it can be moved about; large ones stay where they
    are, and the page shows them from there.
    """

    first_step: Experiment
    load: Callable[[], LabelledData]

    name = "relabelled"
    missing = ""

    @property
    def experiments(self) -> Sequence[Experiment]:
        return [self.first_step]

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes ``relabelled.html``, once the first step has finished."""
        relabelled = Relabelled.by(store, self.first_step, self.load)
        if relabelled is None:
            return []
        path = folder / "relabelled.html"
        files.write_text(path, _page(relabelled, origin, folder))
        return [path]

    def text(self, store: RunStore, origin: dict) -> str:
        if store.lost_labels(self.first_step):
            return f"Relabelled images: {LOST}."
        relabelled = Relabelled.by(store, self.first_step, self.load)
        if relabelled is None:
            return "Relabelled images: the first step has not finished."
        counts = relabelled.counts()
        moved = int(counts.sum() - np.trace(counts))
        return f"Relabelled images: {moved} of {int(counts.sum())}."


def _page(relabelled: Relabelled, origin: dict, folder: Path) -> str:
    images, probability, counts = relabelled.images, relabelled.probability, relabelled.counts()
    pairs = {
        f"{before},{after}": relabelled.pair(before, after)
        for before, after in np.argwhere(counts).tolist()
        if before != after
    }
    sizes = ((images.root / images.keys[i]).stat().st_size for p in pairs.values() for i in p)
    embedded = all(total <= EMBEDDED for total in accumulate(sizes))  # stops at the first above
    source = partial(_data_uri, images.root) if embedded else str
    # Relative to the page: both can be moved together.
    base = "" if embedded else quote(Path(os.path.relpath(images.root, folder)).as_posix()) + "/"
    content = {
        "classes": relabelled.class_names,
        "counts": counts.tolist(),
        "pairs": {
            name: [[source(images.keys[i]), round(float(probability[i]), 4)] for i in indices]
            for name, indices in pairs.items()
        },
        "base": base,
    }
    about = (
        f"Preset {origin['preset']}, data {origin['data']}: the labels that images came with, and "
        f"those after the first step.{drawn_for(relabelled.class_names, origin)}"
    )
    return filled("chainer_jo.report", "relabelled.html", content, about=html.escape(about))


def _data_uri(root: Path, key: str) -> str:
    return "data:image/jpeg;base64," + base64.b64encode((root / key).read_bytes()).decode()
