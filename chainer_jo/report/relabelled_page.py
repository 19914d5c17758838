"""relabelled.html: a page to look through every image that the first step relabelled."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import numpy as np

from chainer_jo import files
from chainer_jo.datasets.labelled_data import LabelledData
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore
from chainer_jo.report.relabelled import LOST, Relabelled

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
    pairs = moved(relabelled)
    images = relabelled.images
    sizes = ((images.root / images.keys[i]).stat().st_size for p in pairs.values() for i in p)
    embedded = _fits(sizes)
    source = partial(_data_uri, images.root) if embedded else str
    about = (
        f"Preset {origin['preset']}, data {origin['data']}: the labels that images came with, and "
        "those after the first step."
    )
    where = "" if embedded else base(images.root, folder)
    listed = listing(relabelled, pairs, source)
    return _filled("Relabelled images", html.escape(about), {**listed, "base": where})


def moved(relabelled: Relabelled) -> dict[str, np.ndarray]:
    """Indices of relabelled images, the most probable first, by ``"before,after"``."""
    return {
        f"{before},{after}": relabelled.pair(before, after)
        for before, after in np.argwhere(relabelled.counts()).tolist()
        if before != after
    }


def base(root: Path, folder: Path) -> str:
    """The relative path from the page to the images: both can be moved together."""
    return quote(Path(os.path.relpath(root, folder)).as_posix()) + "/"


def listing(
    relabelled: Relabelled, pairs: dict[str, np.ndarray], source: Callable[[str], str] = str
) -> dict:
    """The data of the page's script: classes, counts, and source and probability of each pair's
    images."""
    keys, probability = relabelled.images.keys, relabelled.probability
    return {
        "classes": relabelled.class_names,
        "counts": relabelled.counts().tolist(),
        "pairs": {
            name: [[source(keys[i]), round(float(probability[i]), 4)] for i in indices]
            for name, indices in pairs.items()
        },
    }


def _filled(title: str, about: str, content: dict) -> str:
    """The page: HTML under the title, and `listing` with ``base``, the folder of the images."""
    template = resources.files("chainer_jo.report").joinpath("relabelled.html").read_text()
    # In the script that holds the data, "</script" would end it and "<!--<script" hide its end.
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    parts = {"title": html.escape(title), "about": about, "content": text}
    # In one go: what is put in is not looked at again.
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], template)


def _fits(sizes) -> bool:
    """Whether images of these sizes may be embedded; stops reading as soon as they may not."""
    total = 0
    return all((total := total + size) <= EMBEDDED for size in sizes)


def _data_uri(root: Path, key: str) -> str:
    return "data:image/jpeg;base64," + base64.b64encode((root / key).read_bytes()).decode()
