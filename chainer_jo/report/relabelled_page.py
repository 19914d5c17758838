"""relabelled.html: a page to look through every image that the first step relabelled."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import numpy as np

from chainer_jo import files
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.report.relabelled import Relabelled

#: Up to so many bytes of images go into the page itself; more are referred to where they are.
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
        relabelled = Relabelled.by(store, self.first_step, self.load)
        if relabelled is None:
            return "Relabelled images: the first step has not finished."
        counts = relabelled.counts()
        moved = int(counts.sum() - np.trace(counts))
        return f"Relabelled images: {moved} of {int(counts.sum())}."


def _page(relabelled: Relabelled, origin: dict, folder: Path) -> str:
    images = relabelled.data.train.images
    counts = relabelled.counts()
    pairs = {
        f"{before},{after}": relabelled.pair(before, after)
        for before, after in np.argwhere(counts).tolist()
        if before != after
    }
    sizes = ((images.root / images.keys[i]).stat().st_size for p in pairs.values() for i in p)
    embedded = _fits(sizes)
    # What is referred to is found from the folder of the page, wherever both are moved together.
    base = "" if embedded else quote(Path(os.path.relpath(images.root, folder)).as_posix()) + "/"
    source = _data_uri if embedded else (lambda root, key: key)
    content = {
        "classes": relabelled.data.class_names,
        "counts": counts.tolist(),
        "base": base,
        "pairs": {
            name: [
                [source(images.root, images.keys[i]), round(float(relabelled.probability[i]), 4)]
                for i in indices
            ]
            for name, indices in pairs.items()
        },
    }
    template = resources.files("chainer_jo.report").joinpath("relabelled.html").read_text()
    about = f"preset {origin['preset']}, data {origin['data']}"
    # In the script that holds the data, "</script" would end it and "<!--<script" hide its end.
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    return template.replace("{{about}}", html.escape(about)).replace("{{content}}", text)


def _fits(sizes) -> bool:
    """Whether images of these sizes may be embedded; stops to look as soon as they may not."""
    total = 0
    return all((total := total + size) <= EMBEDDED for size in sizes)


def _data_uri(root: Path, key: str) -> str:
    return "data:image/jpeg;base64," + base64.b64encode((root / key).read_bytes()).decode()
