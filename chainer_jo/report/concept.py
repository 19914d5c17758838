"""Figure 1: the concept of the method, as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.store import RunStore

DESCRIPTION = (
    "Images go through a CNN, which gives the probabilities of their classes; the probabilities "
    "of the past epochs are averaged and become the labels. Labels, at first the noisy ones, and "
    "the network's parameters are updated in turn, each with the other fixed."
)


@dataclass(frozen=True)
class Concept:
    """The loop of training and relabelling, as an output that needs no run."""

    number: int
    caption: str
    experiments: Sequence[Experiment] = ()
    missing: str = ""

    @property
    def name(self) -> str:
        return f"figure{self.number}"

    def text(self, store: RunStore, origin: dict) -> str:
        """The caption, as Markdown."""
        return f"**Figure {self.number}.** {self.caption}\n"

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes ``.png`` and ``.pdf`` to ``figures``, ``.md`` and ``.json`` to ``folder``."""
        from chainer_jo.report.concept_drawing import draw  # matplotlib: only where it is drawn

        drawn, written = figures / self.name, folder / self.name
        images = draw()
        for suffix, image in images.items():
            files.write(drawn.with_suffix(suffix), lambda file, image=image: file.write(image))
        files.write_text(written.with_suffix(".md"), self.text(store, origin))
        files.write_json(
            written.with_suffix(".json"),
            {"figure": self.number, "complete": True, "caption": self.caption,
             "description": DESCRIPTION, "curves": []},
        )  # fmt: skip
        return [
            *(drawn.with_suffix(suffix) for suffix in images),
            *(written.with_suffix(suffix) for suffix in (".md", ".json")),
        ]
