"""The results that claims are held against: cells of tables and curves of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean

from chainer_jo.reproduction.claims.statements import Claim
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import of_the_paper
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import cell as cells
from chainer_jo.reproduction.tables_and_figures.cell import Cell
from chainer_jo.reproduction.tables_and_figures.curves import LOG_ENTRIES
from chainer_jo.reproduction.tables_and_figures.output import TableOrFigure
from chainer_jo.reproduction.trials import Trials

#: The cell of a table that is not among the outputs: no runs.
NO_CELL = Cell({}, {}, (), cells.noisy_labels_right)


@dataclass(frozen=True)
class OutputResults:
    """The runs of some tables and figures as `claims.claim.Results`, which lists kinds and keys.
    Tables and figures that are not among the outputs count as not run. ``printed``: the numbers
    that the paper prints, not the runs' numbers; the paper prints no curves."""

    study: Study
    outputs: Sequence[TableOrFigure]
    store: RunStore
    printed: bool = False

    @cached_property
    def _by_name(self) -> dict[str, TableOrFigure]:
        return {output.name: output for output in self.outputs}

    def decides(self, claim: Claim) -> bool:
        """True if the claim is about these runs."""
        shown = not self._by_name.keys().isdisjoint(claim.shown_in.split())
        return shown and (not claim.own_images or of_the_paper(self.study.data))

    def trials(self, kind: str, **keys) -> Trials:
        """One number per trial, in percent; None for a diverged trial."""
        cell = self._cell(kind, keys)
        if self.printed:
            return Trials({}, constant=cell.paper)
        if kind == "exchanged_classes":
            keys |= {"method": "joint", "score": "last", "accuracy": "recovery"}
            exchanged, wanted = self.study.preset.exchanged_classes, keys.pop("classes")
            quantity = partial(
                _of_classes, chosen=lambda k: (k in exchanged) == (wanted == "exchanged")
            )
            return cells.trials(self.store, self._cell("table2", keys).experiments, quantity)
        if kind == "label_accuracy":
            runs = self._curve("figure5", keys)[0] or self._curve("figure6", keys)[0]
            return cells.trials(self.store, runs, _labels_right)
        return cell.trials(self.store)

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        """One number per epoch by trial, accuracies in percent; None for a diverged trial."""
        runs, shown = self._curve(kind, keys)
        if kind.startswith("table"):
            shown = "test"
            runs = self._cell(kind, {"score": "last", "accuracy": shown, **keys}).experiments
        name, curves = logged or shown, {}
        for run in () if self.printed else runs:
            if ended := cells.state(self.store, run):
                log = [LOG_ENTRIES[name].factor * epoch[name] for epoch in self.store.log(run)]
                curves[run.seed] = None if ended == cells.DIVERGED else log
        return curves

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs and learning-rate drops of ``second_step`` or ``figure3`` in this study."""
        if name == "second_step":
            return self.study.second_step_schedule()
        optimization = self._by_name[name].experiments[0].optimization
        return optimization.epochs, optimization.drops

    def _cell(self, name: str, keys: Mapping) -> Cell:
        """A table's cell, or one in the text beside a figure; `NO_CELL` if none has these keys."""
        of_output = self._by_name[name].cells if name in self._by_name else ()
        return next((cell for cell in of_output if cell.keys == keys), NO_CELL)

    def _curve(self, name: str, keys: Mapping) -> tuple[Sequence[Experiment], str]:
        """The runs of a figure's curve, and its quantity."""
        return self._by_name[name].curve(keys) if name in self._by_name else ((), "")


def _of_classes(store: RunStore, experiment: Experiment, chosen: Callable[[int], bool]) -> float:
    """Label accuracy (percent) of some classes."""
    last = cells.result(store, experiment.first_step or experiment)["last"]
    return 100 * fmean(n for k, n in enumerate(last["recovery_by_class"]) if chosen(k))


def _labels_right(store: RunStore, experiment: Experiment) -> float:
    """The accuracy (percent) of the labels that a second step or a baseline trains on."""
    if experiment.first_step:
        return 100 * cells.result(store, experiment.first_step)["last"]["recovery"]
    return cells.noisy_labels_right(store, experiment)
