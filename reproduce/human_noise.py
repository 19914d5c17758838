"""The method on labels of people (CIFAR-10N), next to the same noise drawn by class.

An addition: the paper has no such table. `--labels` is a copy of CIFAR-10_human.pt (J. Wei et al.,
ICLR 2022, licence CC BY-NC 4.0); the images are CIFAR-10's official ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chainer_jo.reproduction.commands import human_labels_main
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper.settings import hyper_parameters
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import cell
from chainer_jo.reproduction.tables_and_figures.output import Results, grid
from chainer_jo.reproduction.tables_and_figures.table import Block, Table
from chainer_jo.reproduction.tables_and_figures.table_layouts import ACCURACIES, validation
from chainer_jo.reproduction.trials import Trials

METHODS = {"cross_entropy": "Cross entropy", "forward": "Forward, true T", "joint": "Joint"}
#: The paper's two pairs of alpha and beta, both with learning rate 0.03.
PAIRS = [hyper_parameters("symmetric", 0.3), hyper_parameters("asymmetric")]
#: The pair of all rows, chosen before any of them by `choice`; docs/history.md has the rule.
CHOSEN = PAIRS[0]
#: Whether both runs of `choice` have finished. Until then preset half has no other run.
DECIDED = False
NOTE = (
    "An addition, not a table of the paper. People: labels of CIFAR-10N (J. Wei et al., ICLR 2022, "
    "CC BY-NC 4.0). By class: drawn with the transition matrix T of these labels, so that errors "
    "do not follow the appearance of images. Difference: people minus by class, the cost of real "
    "noise. Best: first epoch with the highest accuracy on the validation images, which have noisy "
    "labels. Forward has the true T, as from an oracle. "
    f"Joint: alpha {CHOSEN.alpha:g}, beta {CHOSEN.beta:g}. Labels: as in Table 1."
)
LABEL_SETS = ("aggre", "random1", "worse")
PUBLISHED = (
    "Published test accuracy (%), best epoch on the test set, quoted. Not comparable with the rows "
    "above: other networks, and 50,000 training images versus 45,000"
)
# Reported: J. Wei et al., "Learning with Noisy Labels Revisited: A Study Using Real-World Human
# Annotations", ICLR 2022 (arXiv 2110.12088), and its leaderboard. Replicated: Hudovernik et al.,
# ReScience C 2026 (doi 10.5281/zenodo.18401497), table 2, three runs. The networks are as the
# replication inferred them; – where there is no number.
QUOTED_FROM = ("reported", "replicated")
QUOTED = """
    CE, ResNet-34                 : 87.77 85.02 77.69  91.70 90.20 83.91
    Forward T, ResNet-34          : 88.24 86.88 79.79  –     –     –
    Co-teaching, ResNet-34        : 91.20 –     83.83  91.93 90.69 80.92
    ELR, ResNet-34                : 92.38 –     83.58  93.00 92.20 87.89
    CAL, ResNet-34                : 91.97 90.93 85.36  91.84 91.10 84.82
    PES (semi), ResNet-34         : 94.66 95.06 92.68  94.64 95.20 92.58
    DivideMix, 2 PreAct ResNet-18 : 95.01 95.16 92.56  95.62 95.72 93.10
    SOP+, PreAct ResNet-18        : 95.61 95.28 93.24  96.04 95.70 92.89
"""


@dataclass(frozen=True)
class HumanNoise(Table):
    """The table after the paper's in lists of outputs, with published numbers below. ``choosing``:
    only the runs of the first block are to do."""

    choosing: bool = False

    name = "human_noise"
    title = "Labels of people"

    @property
    def experiments(self) -> Sequence[Experiment]:
        of_choice = [run for each in self.blocks[0].cells for run in each.experiments]
        return of_choice if self.choosing else super().experiments

    def paragraphs(self, results: Results) -> list[str]:
        sets = [f"{source} {name}" for source in QUOTED_FROM for name in LABEL_SETS]
        lines = (line.partition(":") for line in QUOTED.strip().splitlines())
        quoted = grid(["", *sets], [[label.strip(), *row.split()] for label, _, row in lines])
        return [*super().paragraphs(results), f"*{PUBLISHED}*", quoted]


@dataclass(frozen=True)
class Difference(cell.Cell):
    """The number of ``experiments`` minus the number of the runs ``minus``, trial by trial."""

    minus: Sequence[Experiment] = ()

    def trials(self, store: RunStore) -> Trials:
        runs = self.experiments, self.minus
        of, minus = (cell.trials(store, each, self.quantity) for each in runs)
        return replace(of - minus, planned=len(self.experiments))


def best_on_test(store: RunStore, run: Experiment) -> float:
    """The highest test accuracy (percent) of all epochs."""
    return 100 * max(epoch["test"] for epoch in store.log(run))


COLUMNS = {"human": "people", "drawn": "by class", "difference": "difference"}
#: Rows of every method, and what they show of each accuracy.
SCORES = {
    which: [cell.score(which, accuracy) for accuracy in ACCURACIES] for which in ("best", "last")
}
SCORES["best on test"] = [best_on_test, None]


def choice(study: Study) -> Block:
    """Noisy validation accuracy of both pairs on random1, trial 0."""
    runs = [[study.joint("human-random1", 0.0, 0, **vars(pair))] for pair in PAIRS]
    row = {"label_set": "random1", "score": "validation"}
    cells = [cell.Cell(row, vars(p), r, validation) for p, r in zip(PAIRS, runs, strict=True)]
    headers = [f"α = {pair.alpha:g}, β = {pair.beta:g}" for pair in PAIRS]
    title = (
        "α and β: accuracy (%) on noisy validation labels at the last epoch; preset half decides, "
        "before its other runs begin"
    )
    return Block(headers, [("random1, joint", cells)], title, best="row")


def compared(study: Study, label_set: str, method: str, score: str, quantities: list) -> list:
    """Cells of people, by class, and their difference, for each of ACCURACIES."""
    runs = {}
    for origin in ("human", "drawn"):
        noise, trials = (f"{origin}-{label_set}", 0.0), study.comparison_trials()
        if method == "joint":
            runs[origin] = [study.joint(*noise, trial, **vars(CHOSEN)) for trial in trials]
        else:
            runs[origin] = [study.baseline(method, *noise, trial) for trial in trials]
    row = {"label_set": label_set, "method": method, "score": score}
    cells: list[cell.Cell | None] = []
    for accuracy, quantity in zip(ACCURACIES, quantities, strict=True):
        people, drawn, both = ({"accuracy": accuracy, "noise": noise} for noise in COLUMNS)
        if quantity is None:
            cells += [None] * len(COLUMNS)
            continue
        cells.append(cell.Cell(row, people, runs["human"], quantity))
        cells.append(cell.Cell(row, drawn, runs["drawn"], quantity))
        cells.append(Difference(row, both, runs["human"], quantity, minus=runs["drawn"]))
    return cells


def comparison(study: Study, label_set: str) -> Block:
    """The methods on one label set."""
    before = [None, cell.noisy_labels_right]
    rows = [("Noisy labels", compared(study, label_set, "cross_entropy", "before", before))]
    for method, name in METHODS.items():
        for score, quantities in SCORES.items():
            cells = compared(study, label_set, method, score, quantities)
            rows.append((f"{name}, {score}", cells))
    headers = [f"{name} {of}" for name in ACCURACIES.values() for of in COLUMNS.values()]
    return Block(headers, rows, label_set)


def table(study: Study) -> Table:
    blocks = [choice(study), *(comparison(study, name) for name in LABEL_SETS)]
    caption = f"Accuracy (%) on labels of people and on labels drawn by class; {trained_on(study)}."
    choosing = not DECIDED and study.preset.name == "half"
    return HumanNoise(15, caption, blocks, NOTE, choosing)


if __name__ == "__main__":
    human_labels_main(table, __doc__)
