"""The results that claims are held against: cells of tables and curves of figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from chainer_jo.paper.claims.claim import Claim
from chainer_jo.paper.trials import Trials
from chainer_jo.report.cells import noisy_labels_right, trials
from chainer_jo.report.curves import QUANTITIES
from chainer_jo.report.output import Output
from chainer_jo.report.words import of_the_paper
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.presets import Study
from chainer_jo.runs.store import RunStore


class OutputResults:
    """Implements `chainer_jo.paper.claims.claim.Results`, see there for kinds and keys, over the
    runs of some tables and figures; of others nothing has run."""

    def __init__(self, study: Study, outputs: Sequence[Output], store: RunStore) -> None:
        self.study = study
        self.outputs = {output.name: output for output in outputs}
        self.store = store

    @property
    def premises(self) -> Sequence[str]:
        """Claims that the preset was chosen to bear out, on the images it was chosen on."""
        return self.study.preset.premises if self.study.of_the_preset else ()

    def decides(self, claim: Claim) -> bool:
        """Whether these runs are what the claim is about."""
        shown = not self.outputs.keys().isdisjoint(claim.shown_in)
        return shown and (not claim.own_images or of_the_paper(self.study.data))

    def trials(self, kind: str, **keys) -> Trials:
        """By trial, one number in percent; None for one that diverged."""
        if kind == "exchanged_classes":
            classes = keys.pop("classes")
            cell = {"method": "joint", "score": "last", "accuracy": "recovery", **keys}
            return trials(self.store, self._cell("table2", cell)[0], self._by_class(classes))
        if kind == "label_accuracy":
            runs = self._curve("figure5", keys)[0] or self._curve("figure6", keys)[0]
            return trials(self.store, runs, _labels_right)
        return trials(self.store, *self._cell(kind, keys))

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        """By trial, one number per epoch, accuracies in percent; None for one that diverged."""
        if kind.startswith("table"):
            name = "test"
            runs, _ = self._cell(kind, {"score": "last", "accuracy": name, **keys})
        else:
            runs, name = self._curve(kind, keys)
        name = logged or name

        def read(store: RunStore, run: Experiment) -> list[float]:
            return [QUANTITIES[name].factor * epoch[name] for epoch in store.log(run)]

        return trials(self.store, runs, read).numbers

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs and learning-rate drops of ``second_step`` or ``figure3`` in this study."""
        if name == "second_step":
            return self.study.second_step_schedule()
        optimization = self.outputs[name].experiments[0].optimization
        return optimization.epochs, optimization.drops

    def _cell(self, name: str, keys: Mapping) -> tuple[Sequence[Experiment], Callable]:
        """The runs and the quantity of a table's cell, or of one in the text beside a figure."""
        cells = self.outputs[name].cells if name in self.outputs else ()
        found = (cell for cell in cells if cell.keys == keys)
        return next(((cell.experiments, cell.quantity) for cell in found), ((), None))

    def _curve(self, name: str, keys: Mapping) -> tuple[Sequence[Experiment], str]:
        """The runs of a figure's curve, and what it shows."""
        figure = self.outputs.get(name)
        curves = figure.curves if figure else ()
        return next(((c.experiments, figure.key) for c in curves if c.keys == keys), ((), ""))

    def _by_class(self, classes: str) -> Callable[[RunStore, Experiment], float]:
        """Recovery of the classes that asymmetric noise exchanges, or of the others."""

        def read(store: RunStore, experiment: Experiment) -> float:
            exchanged = self.study.preset.exchanged_classes
            values = store.result(experiment.first_step)["last"]["recovery_by_class"]
            chosen = [
                v for k, v in enumerate(values) if (k in exchanged) == (classes == "exchanged")
            ]
            return 100 * sum(chosen) / len(chosen)

        return read


def _labels_right(store: RunStore, experiment: Experiment) -> float:
    """The share of the labels that a second step or a baseline trains on that is right."""
    if experiment.first_step:
        return 100 * store.result(experiment.first_step)["last"]["recovery"]
    return noisy_labels_right(store, experiment)
