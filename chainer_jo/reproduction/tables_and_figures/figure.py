"""Figures of curves over epochs, drawn from the logs, with their data as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.cell import Cell
from chainer_jo.reproduction.tables_and_figures.claims_page import judged, table
from chainer_jo.reproduction.tables_and_figures.curves import LOG_ENTRIES, Curve, Series, events_of
from chainer_jo.reproduction.tables_and_figures.output import Results, TableOrFigure, as_csv, grid
from chainer_jo.reproduction.tables_and_figures.table import Block
from chainer_jo.reproduction.trials import Trials


@dataclass(frozen=True)
class Figure(TableOrFigure):
    """A figure of the paper, to be drawn from a store.

    Parameters
    ----------
    key : the logged quantity, one of `curves.LOG_ENTRIES`.
    curves : in the legend's order.
    conditions : the noise, part of the drawing's title; after ";" further settings, below it.
    side_table : numbers that the paper's text states beside the figure; their runs are required.
    missing : one line if a part cannot be shown because an input is missing; otherwise empty.
    study : preset and images; with it, the page lists the paper's claims about the figure.
    moving_means : whether a single trial has the means over a twentieth of the epochs, too.
    limits : numbers that the vertical axis contains in every preset.
    levels : legend of the curves' dashed lines.
    """

    number: int
    caption: str
    key: str
    curves: Sequence[Curve]
    conditions: str
    side_table: Block | None = None
    missing: str = ""
    study: Study | None = None
    moving_means: bool = False
    limits: Sequence[float] = ()
    levels: str = ""

    kind = "figure"

    @property
    def cells(self) -> list[Cell]:
        """The cells of the side table."""
        return self.side_table.cells if self.side_table else []

    def curve(self, keys: Mapping) -> tuple[Sequence[Experiment], str]:
        """The runs of the curve with these keys, and ``key``; no runs if there is no such curve."""
        return next(((c.experiments, self.key) for c in self.curves if c.keys == keys), ((), ""))

    @property
    def experiments(self) -> list[Experiment]:
        """All required runs, each once, in the legend's order."""
        curves = (run for curve in self.curves for run in curve.experiments)
        return list(dict.fromkeys((*curves, *super().experiments)))

    def _owners(self) -> list[str]:
        """The curves of each event that only some curves have."""
        events = {event.text: event.curves for event in events_of(self.curves)}
        return [
            f"{text}: {' and '.join(dict.fromkeys(self.curves[n].name for n in sorted(numbers)))}"
            for text, numbers in events.items()
            if len(numbers) < len(self.curves)
        ]

    def footnote(self, results: Results) -> str:
        """The note under a page's caption: preset, data, conditions and trials."""
        counts = {len(series.trials) for series in self.read(results.store)}
        trials = max(counts)
        most = "at most " if len(counts - {0}) > 1 else ""
        several = f"means over {most}{trials} trials, thin lines: trials"
        clauses = [
            str(results),
            self.conditions,
            *self._owners(),
            several if trials > 1 else "one trial",
        ]
        return "; ".join(clauses) + "."

    def claims(self, results: Results) -> list[dict]:
        """The claims whose numbers this figure shows, as `Claims` writes them."""
        return judged(self.study, [self], results.store, self.name) if self.study else []

    def paragraphs(self, results: Results) -> list[str]:
        """Last value of every curve, and the claims about the figure."""
        quantity, rows = LOG_ENTRIES[self.key], []
        for series in self.read(results.store):
            done = series.state if series.diverged else f"{series.finished} of {series.planned}"
            ending = series.by_epoch[-1].rounded(quantity.digits) if series.trials else "…"
            epochs = f"{series.epochs} of {series.curve.length}"
            rows.append([series.curve.label, ending, epochs, done])
        headers = ["", f"last {quantity.axis}", "epochs", "trials"]
        paragraphs = [self.footnote(results), grid(headers, rows)]
        if self.side_table:
            paragraphs += self.side_table.paragraphs(results)
        claims = self.claims(results)
        heading = f"*Claims of the paper about {self.title}, as in claims.md*"
        return paragraphs + ([heading, table(claims)] if claims else [])

    def data(self, results: Results) -> dict:
        """Last value of every curve."""
        curves, all_series = [], self.read(results.store)
        for series in all_series:
            last = series.by_epoch[-1] if series.epochs else Trials({})
            curves.append(
                {
                    "label": series.curve.label,
                    "epochs": series.epochs,
                    "of": series.curve.length,
                    "mean": last.mean_or_none,
                    "std": last.std,
                    "trials": series.finished,
                    "diverged": series.diverged,
                    "planned": series.planned,
                    "runs": [e.id for e in series.curve.experiments],
                }
            )
        complete = all(series.complete for series in all_series)
        complete &= all(cell.trials(results.store).complete for cell in self.cells)
        return {
            **self.head(results, complete),
            "axis": LOG_ENTRIES[self.key].axis,
            "curves": curves,
            "claims": {claim["id"]: claim["word"] for claim in self.claims(results)},
        }

    def extra_files(self, results: Results) -> dict[str, str | bytes]:
        """The drawing of the epochs logged so far, and every epoch of every trial as CSV."""
        from chainer_jo.reproduction.tables_and_figures.plot import plot

        series, divergences = self.read(results.store), self._divergences(results.store)
        noise, _, _ = self.conditions.partition("; ")  # is in the title
        title = f"{self.title}: {LOG_ENTRIES[self.key].axis.partition(' (')[0]}, {noise}"
        note = self.footnote(results).replace(f"; {noise};", ";", 1)
        scale = self.study.preset.time_scale if self.study else 1.0
        drawing = plot(
            title,
            self.key,
            series,
            divergences,
            note,
            time_scale=scale,
            moving_means=self.moving_means,
            limits=self.limits,
            levels=self.levels,
        )
        labelled = [(each.curve.label, each) for each in series]
        labelled += [(f"{each.curve.label}, KL", each) for each in divergences.values()]
        return {**drawing, ".csv": as_csv(self._rows(labelled, results))}

    def _divergences(self, store: RunStore) -> dict[int, Series]:
        """The KL divergence of soft labels (eq. 6), by the curve of their cross entropy."""
        if self.key != "cross_entropy":
            return {}
        soft = [n for n, curve in enumerate(self.curves) if curve.experiments[0].first_step]
        return {n: self.curves[n].read(store, "classification") for n in soft}

    def read(self, store: RunStore) -> list[Series]:
        """The logged values of every curve so far."""
        return [curve.read(store, self.key) for curve in self.curves]

    def _rows(self, all_series: Sequence[tuple[str, Series]], results: Results) -> Iterator[list]:
        """One row per curve, trial and epoch, with mean and std over the trials at the epoch."""
        number = LOG_ENTRIES[self.key].axis
        yield ["preset", "data", "precision", "curve", "seed", "epoch", number, "mean", "std"]
        for label, series in all_series:
            summary = [(_short(found.mean_or_none), _short(found.std)) for found in series.by_epoch]
            for seed, values in series.trials.items():
                for epoch, value in enumerate(values):
                    numbers = _short(value), *summary[epoch]
                    yield [*results.names.values(), label, seed, epoch + 1, *numbers]


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
