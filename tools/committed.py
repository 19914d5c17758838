"""The committed results of every preset and data set: runs, tables, figures and claims."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import PRESETS
from chainer_jo.reproduction.running.provenance import known
from chainer_jo.reproduction.running.store import read_packed

#: The preset of the paper's own scale, and presets of which the README shows the first there is.
FULL_SCALE = "paper"
MOST_TELLING = ("half", "digits")
#: Tables that the paper does not have, by the name of their script.
ADDITIONS = {
    "ablations": "ablations of the first step",
    "human_noise": "training on labels of people",
}
#: The place in docs that describes a data set.
DESCRIBED = {
    "cifar10": "checklist.md#data",
    "cifar10-jpeg": "checklist.md#cifar-10-as-jpeg",
    "clothing1m-standin": "clothing1m.md#the-stand-in",
}


@dataclass(frozen=True)
class Reference:
    """The committed results of one preset and data set, below ``results`` and ``figures``."""

    name: str
    results: Path
    figures: Path

    @cached_property
    def preset(self) -> str:
        """The longest name of a preset that the folder's begins with."""
        return max((p for p in PRESETS if self.name.startswith(p)), key=len)

    @cached_property
    def provenance(self) -> dict:
        return known(self.results)

    @cached_property
    def claims(self) -> list[dict]:
        return files.read_json(self.results / "claims.json", list, missing=[])

    def outputs(self, kind: str) -> dict[int, dict]:
        """The tables or figures that there are, by number."""
        found = map(files.read_json, self.results.glob(f"{kind}[0-9]*.json"))
        return dict(sorted((output[kind], output) for output in found))

    @cached_property
    def additions(self) -> dict[str, dict]:
        """The tables of `ADDITIONS` that there are, by name."""
        found = {name: self.results / f"{name}.json" for name in ADDITIONS}
        return {name: files.read_json(path) for name, path in found.items() if path.exists()}

    @cached_property
    def curves(self) -> list[dict]:
        """The learning curves of Table 1's runs."""
        found = files.read_json(self.results / "learning_curves.json", missing={"curves": []})
        return found["curves"]

    @cached_property
    def data(self) -> str:
        """Name of the data set."""
        return (self.provenance["data"] or {"data": "?"})["data"]

    @cached_property
    def precisions(self) -> str:
        described = [run["experiment"] for run in read_packed(self.results).values()]
        return ", ".join(sorted({experiment["precision"] for experiment in described}))

    @cached_property
    def labels_right(self) -> list[str]:
        """Label accuracy before and after the first step, in percent, of the method's runs in
        Tables 1 and 2: ``symmetric 50 %: 55.0 → 97.3``."""
        runs, found = read_packed(self.results), {}
        for number in (1, 2):
            for cell in self.outputs("table").get(number, {"cells": []})["cells"]:
                for run in (runs[key] for key in cell["runs"] if key in runs):
                    first = Experiment.from_dict(run["experiment"]).first_step
                    if first and first.noise.rate and first.id in runs:
                        found[first] = runs[first.id]["result"]
        pairs = defaultdict(list)
        for first, result in found.items():
            if result["state"] == "finished":
                pair = result["noisy_labels_right"], result["last"]["recovery"]
                pairs[first.noise.kind, first.noise.rate].append(pair)
        return [
            f"{kind} {100 * rate:g} %: "
            + " → ".join(
                f"{100 * statistics.fmean(side):.1f}"
                for side in zip(*pairs[kind, rate], strict=True)
            )
            for kind, rate in sorted(pairs, reverse=True)
        ]


def references(results: Path, figures: Path) -> list[Reference]:
    """All committed results, the most telling first; of a preset, results on its reference data.
    Raises UserError where there are none, and for a folder without runs."""
    order = list(dict.fromkeys([FULL_SCALE, *MOST_TELLING, *PRESETS]))
    folders = [path for path in results.glob("*") if path.is_dir()]
    if not folders:
        raise UserError(f"{results}: no results; expected a folder for each preset")
    found = [Reference(folder.name, folder, figures / folder.name) for folder in folders]
    for r in found:
        if not any(r.name.startswith(preset) for preset in PRESETS):
            raise UserError(f"{r.results}: no preset; expected one of {', '.join(PRESETS)}")
        if not r.provenance.get("runs"):
            raise UserError(f"{r.results}: no runs; pack them by tools/pack.py")

    def telling(r: Reference) -> tuple:
        return order.index(r.preset), r.data != PRESETS[r.preset].reference_data, r.name

    return sorted(found, key=telling)


def described(data: str, docs: str) -> str:
    """The name of a data set, with a link to where it is described below ``docs``."""
    return f"[{data}]({docs}/{DESCRIBED[data]})" if data in DESCRIBED else data


def settings(table: dict) -> tuple[int, int]:
    """Numbers of settings of a table or figure: with a finished trial, and all."""
    both = table.get("cells", []) + table.get("curves", [])
    cells = [cell for cell in both if cell["runs"]]  # others are quoted
    done = {tuple(cell["runs"]) for cell in cells if cell["trials"]}
    return len(done), len({tuple(cell["runs"]) for cell in cells})


def trials(outputs: Iterable[dict]) -> str:
    """Trials of the cells of tables and curves of figures that have any: ``6``, or ``1 to 6``."""
    outputs = list(outputs)
    counts = {len(cell["trials"]) for output in outputs for cell in output.get("cells", [])}
    counts |= {curve["trials"] for output in outputs for curve in output.get("curves", [])}
    counts -= {0}
    if not counts:
        return ""
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
