"""What the claims read: the finished runs of a study, under the names that the paper gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from chainer_jo import paper
from chainer_jo.datasets.clothing1m import NAME as CLOTHING1M
from chainer_jo.experiments import figure_runs
from chainer_jo.experiments.clothing1m import Clothing1MStudy
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper.claims import Claim
from chainer_jo.report.cells import DIVERGED, Quantity, noisy_labels_right, score, state
from chainer_jo.report.comparison import NOISY_LABELS, comparison_run
from chainer_jo.report.confidence import confidence
from chainer_jo.report.sensitivity import sensitivity_runs, validation

Number = TypeVar("Number")

CLOTHING1M_TABLE = "table3"
NOISE = {"table1": "symmetric", "table2": "asymmetric"}
CONFIDENCE = {"table12": ("asymmetric", 0.4), "table13": ("symmetric", 0.7)}


def results_of(study: Study | Clothing1MStudy, store: RunStore) -> StudyResults | Clothing1MResults:
    """What the claims read of a study's runs."""
    kind = Clothing1MResults if isinstance(study, Clothing1MStudy) else StudyResults
    return kind(study, store)


def by_trial(
    store: RunStore,
    runs: Iterable[Experiment],
    quantity: Callable[[RunStore, Experiment], Number | None],
    first_seed: int,
) -> dict[int, Number | None]:
    """The `quantity` by trial: None of a diverged one, and none of one without a number."""
    numbers = {}
    for run in runs:
        trial, ended = run.seed - first_seed, state(store, run)
        if ended == DIVERGED:
            numbers[trial] = None
        elif ended and (number := quantity(store, run)) is not None:
            numbers[trial] = number
    return numbers


class Clothing1MResults:
    """What there is of `chainer_jo.paper.claims.Results` for Table 3.

    The paper's number for Forward is of Clothing1M, so it is held against that data set alone.
    """

    def __init__(self, study: Clothing1MStudy, store: RunStore) -> None:
        self.study = study
        self.store = store

    def decides(self, claim: Claim) -> bool:
        """Whether these runs are what the claim is about."""
        return CLOTHING1M_TABLE in claim.shown_in and self.study.data == CLOTHING1M

    def trials(self, kind: str, **keys) -> dict[int, float | None]:
        """By trial, the test accuracy in percent; None for one that diverged."""
        run = {"joint": self.study.joint, "cross_entropy": self.study.baseline}[keys["method"]]
        runs = [run(trial) for trial in self.study.comparison_trials()]
        return by_trial(self.store, runs, score(keys["score"], "test"), self.study.seed)


class StudyResults:
    """Implements `chainer_jo.paper.claims.Results` over a store; see there for kinds and keys."""

    def __init__(self, study: Study, store: RunStore) -> None:
        self.study = study
        self.store = store

    def decides(self, claim: Claim) -> bool:
        """Whether these runs are what the claim is about: every one but those of Clothing1M."""
        return CLOTHING1M_TABLE not in claim.shown_in

    def trials(self, kind: str, **keys) -> dict[int, float | None]:
        """By trial, one number in percent; None for one that diverged."""
        study = self.study
        if kind in NOISE:
            runs = self._comparison(kind, keys["method"], keys["noise_rate"])
            before = keys["method"] == NOISY_LABELS
            quantity = noisy_labels_right if before else score(keys["score"], keys["accuracy"])
            return self._read(runs, quantity)
        if kind in CONFIDENCE:
            noise, rate = CONFIDENCE[kind]
            runs = [study.first_step(noise, rate, t) for t in study.sensitivity_trials()]
            return self._read(runs, confidence("accuracy", keys["range"]))
        if kind == "figure4":
            return self._read(self._figure4(keys["rule"]), score("last", "test"))
        if kind == "exchanged_classes":
            runs = self._comparison("table2", "joint", keys["noise_rate"])
            return self._read(runs, self._by_class(keys["classes"]))
        if kind == "label_accuracy":
            return self._read(self._figure5(keys["labels"], keys["stage"]), self._labels_right)
        printed = getattr(paper, kind.upper())
        runs = sensitivity_runs(study, printed, keys["parameter"], keys["value"])
        return self._read(runs, validation)

    def curve(self, kind: str, **keys) -> dict[int, list[float] | None]:
        """By trial, one number per epoch, accuracies in percent; None for one that diverged."""
        study = self.study
        trials = study.figure_trials()
        if kind in NOISE:
            runs, name = self._comparison(kind, keys["method"], keys["noise_rate"]), "test"
        elif kind == "figure2":
            runs = [figure_runs.figure2_run(study, keys["learning_rate"], t) for t in trials]
            name = "test"
        elif kind == "figure3":
            runs = [figure_runs.figure3_run(study, keys["noise_rate"], t) for t in trials]
            name = "cross_entropy"
        elif kind == "figure4":
            runs, name = [run.first_step for run in self._figure4(keys["rule"])], "recovery"
        else:
            runs = self._figure5(keys["labels"], keys["stage"])
            name = {"figure5": "test", "figure6": "cross_entropy"}[kind]
        factor = 1 if name == "cross_entropy" else 100

        def logged(store: RunStore, run: Experiment) -> list[float]:
            return [factor * epoch[name] for epoch in store.log(run)]

        return self._read(runs, logged)

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        """Epochs and learning-rate drops of ``second_step`` or ``figure3`` in this study."""
        if name == "second_step":
            return self.study.second_step_schedule()
        optimization = figure_runs.figure3_run(self.study, 0.0, 0).optimization
        return optimization.epochs, optimization.drops

    def _comparison(self, table: str, method: str, rate: float) -> list[Experiment]:
        trials = self.study.comparison_trials()
        return [comparison_run(self.study, method, NOISE[table], rate, t) for t in trials]

    def _figure4(self, rule: str) -> list[Experiment]:
        trials = self.study.figure_trials()
        return [figure_runs.figure4_run(self.study, rule, t) for t in trials]

    def _figure5(self, labels: str, stage: str) -> list[Experiment]:
        if labels == "pseudo" and not self.study.pseudo_available:
            return []
        trials = self.study.figure_trials()
        return [figure_runs.figure5_run(self.study, labels, stage, t) for t in trials]

    def _read(self, runs: Iterable[Experiment], quantity: Callable[..., Number | None]) -> dict:
        return by_trial(self.store, runs, quantity, self.study.seed)

    def _by_class(self, classes: str) -> Quantity:
        """Recovery of the classes that asymmetric noise exchanges, or of the others."""

        def read(store: RunStore, experiment: Experiment) -> float:
            exchanged = self.study.preset.exchanged_classes
            values = store.result(experiment.first_step)["last"]["recovery_by_class"]
            chosen = [
                v for k, v in enumerate(values) if (k in exchanged) == (classes == "exchanged")
            ]
            return 100 * sum(chosen) / len(chosen)

        return read

    @staticmethod
    def _labels_right(store: RunStore, experiment: Experiment) -> float:
        """The share of the labels that a second step or a baseline trains on that is right."""
        if experiment.first_step:
            return 100 * store.result(experiment.first_step)["last"]["recovery"]
        return noisy_labels_right(store, experiment)
