"""Figures of curves over epochs: drawn from what is logged, with the data behind them beside."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.store import RunStore
from chainer_jo.report.claims import judged
from chainer_jo.report.curves import QUANTITIES, Curve, Series
from chainer_jo.report.layout import aligned
from chainer_jo.report.table import Block
from chainer_jo.report.words import schedules


@dataclass(frozen=True)
class Figure:
    """A figure of the paper, to be drawn from a store.

    Parameters
    ----------
    number : as in the paper.
    caption : what it shows, and of which images.
    key : what it shows, one of `chainer_jo.report.curves.QUANTITIES`.
    curves : in the legend's order.
    conditions : the noise and whatever else the paper leaves open, as printed under the axes.
    beside : numbers that the paper's text states along with the figure; their runs are needed too.
    missing : what could not be shown for want of an input, in one line; empty if nothing.
    study : what its runs are of; with it, the page says what the paper's figure shows and whether
        the runs bear that out.
    """

    number: int
    caption: str
    key: str
    curves: Sequence[Curve]
    conditions: str
    beside: Block | None = None
    missing: str = ""
    study: Study | None = None

    @property
    def name(self) -> str:
        return f"figure{self.number}"

    @property
    def experiments(self) -> list[Experiment]:
        """Every run it needs, each once, in the legend's order."""
        beside = [e for cell in self.beside.cells for e in cell.experiments] if self.beside else []
        return list(dict.fromkeys([e for curve in self.curves for e in curve.experiments] + beside))

    @property
    def drops(self) -> list[int]:
        """After which epochs a learning rate is divided."""
        schedules = (e.optimization.drops for curve in self.curves for e in curve.experiments)
        return sorted({drop for drops in schedules for drop in drops})

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes ``figure<number>`` from the epochs there are; returns the paths.

        ``.png``, ``.pdf`` and ``.csv`` go to ``figures``, ``.md`` and ``.json`` to ``folder``.
        """
        from chainer_jo.report.plot import plot  # matplotlib: only where something is drawn

        series = self._read(store)
        drawn, written = figures / self.name, folder / self.name
        images = plot(self.key, self.curves, series, self.drops, self.footnote(origin))
        for suffix, image in images.items():
            files.write(drawn.with_suffix(suffix), lambda file, image=image: file.write(image))
        files.write_text(drawn.with_suffix(".csv"), self._csv(series, origin))
        files.write_text(written.with_suffix(".md"), self.text(store, origin))
        files.write_json(written.with_suffix(".json"), self._json(series, store, origin))
        return [
            *(drawn.with_suffix(suffix) for suffix in (*images, ".csv")),
            *(written.with_suffix(suffix) for suffix in (".md", ".json")),
        ]

    def footnote(self, origin: dict) -> str:
        """What the curves are of, which is printed under the axes."""
        trials = max(len(curve.experiments) for curve in self.curves)
        parts = [
            f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}",
            self.conditions,
            schedules(self.study, "this preset's") if self.study else "",
            f"mean and standard deviation of {trials} trials" if trials > 1 else "one trial",
        ]
        return "; ".join(filter(None, parts)) + "."

    def verdicts(self, store: RunStore) -> list[dict]:
        """The claims whose numbers this figure shows, as `Claims` writes them."""
        return judged(self.study, store, self.name) if self.study else []

    def text(self, store: RunStore, origin: dict) -> str:
        """The caption, where every curve ends, what the paper's figure shows and whether this one
        does, as Markdown, for the terminal too."""
        quantity = QUANTITIES[self.key]
        lines = [f"**Figure {self.number}.** {self.caption}", "", self.footnote(origin), ""]
        rows = [["", f"last {quantity.axis}", "epochs", "trials"]]
        for curve, series in zip(self.curves, self._read(store), strict=True):
            rows.append(
                [
                    curve.label,
                    _ending(series, quantity.digits),
                    f"{series.epochs} of {series.length}",
                    series.state if series.diverged else f"{series.finished} of {series.planned}",
                ]
            )
        lines += [*aligned(rows), ""]
        if self.beside:
            lines += [f"*{self.beside.title}*", ""]
            rows = [["", *self.beside.headers]]
            for label, cells in self.beside.rows:
                rows.append([label, *(cell.markdown(store) if cell else "" for cell in cells)])
            lines += [*aligned(rows), ""]
        if verdicts := self.verdicts(store):
            lines += [f"*The paper's Figure {self.number}, of CIFAR-10, and these runs*", ""]
            lines += [
                f"- {v['statement']} Here: {v['label']}; "
                + "; ".join(f"{f['what']}: {f['numbers']}" for f in v["findings"])
                for v in verdicts
            ]
            lines.append("")
        return "\n".join(lines)

    def _read(self, store: RunStore) -> list[Series]:
        return [curve.read(store, self.key) for curve in self.curves]

    def _csv(self, all_series: Sequence[Series], origin: dict) -> str:
        """One row per curve, trial and epoch; mean and std are over the trials of that epoch."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(
            ["preset", "data", "precision", "curve", "seed", "epoch", self.key, "mean", "std"]
        )
        for curve, series in zip(self.curves, all_series, strict=True):
            epochs = range(1, series.epochs + 1)
            summary = {n: (_short(series.mean(n)), _short(series.std(n))) for n in epochs}
            for seed, values in series.trials.items():
                for epoch, value in enumerate(values, 1):
                    key = (origin["preset"], origin["data"], origin["precision"], curve.label)
                    writer.writerow([*key, seed, epoch, _short(value), *summary[epoch]])
        return out.getvalue()

    def _json(self, all_series: Sequence[Series], store: RunStore, origin: dict) -> dict:
        curves = []
        for curve, series in zip(self.curves, all_series, strict=True):
            n = series.epochs
            curves.append(
                {
                    "label": curve.label,
                    "epochs": n,
                    "of": series.length,
                    "mean": series.mean(n) if n else None,
                    "std": series.std(n) if n else None,
                    "trials": series.finished,
                    "diverged": series.diverged,
                    "planned": series.planned,
                    "runs": [e.id for e in curve.experiments],
                }
            )
        cells = self.beside.cells if self.beside else []
        return {
            "figure": self.number,
            **origin,
            "complete": all(series.complete for series in all_series)
            and all(cell.value(store).complete for cell in cells),
            "caption": self.caption,
            "axis": QUANTITIES[self.key].axis,
            "curves": curves,
            "claims": {v["id"]: v["label"] for v in self.verdicts(store)},
        }


def _ending(series: Series, digits: int) -> str:
    """``91.2 ± 0.3``, at the last epoch there is."""
    if not series.trials:
        return "…"
    std = series.std(series.epochs)
    spread = "" if std is None else f" ± {std:.{digits}f}"
    return f"{series.mean(series.epochs):.{digits}f}{spread}"


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
