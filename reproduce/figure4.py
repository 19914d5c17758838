"""Figure 4: recovery accuracy of soft and hard labels in the first step on SN-CIFAR at 0.7."""

from chainer_jo import paper
from chainer_jo.commands import main
from chainer_jo.experiments.figure_runs import FIGURE4_RULES, figure4_run
from chainer_jo.report import Study
from chainer_jo.report.cells import Cell, score
from chainer_jo.report.curves import Curve
from chainer_jo.report.figure import Figure
from chainer_jo.report.table import Block
from chainer_jo.report.words import images

CAPTION = (
    "Recovery accuracy of the first step with soft labels, and with hard ones of which all or only "
    "the top k are updated in an epoch"
)
PRINTED = {
    ("soft", "test"): paper.text.FIGURE4_SOFT["test_accuracy"],
    ("soft", "recovery"): paper.text.FIGURE4_RECOVERY["soft_recovery"],
    ("top500", "test"): paper.text.FIGURE4_HARD["test_accuracy"],
    ("top500", "recovery"): paper.text.FIGURE4_RECOVERY["hard_recovery"],
}


def figure(study: Study) -> Figure:
    curves, rows = [], []
    for rule, top in FIGURE4_RULES.items():
        label = f"top {top}" if top else {"soft": "soft label", "all": "hard label, all"}[rule]
        if top and study.labels(top) != top:
            label += f" (here {study.labels(top)})"
        runs = [figure4_run(study, rule, trial) for trial in study.figure_trials()]
        curves.append(Curve(label, [run.first_step for run in runs]))
        cells = [
            Cell({"rule": rule}, {"accuracy": a}, runs, score("last", a), PRINTED.get((rule, a)))
            for a in ("test", "recovery")
        ]
        rows.append((label, cells))
    headers = ("test accuracy (%), second step", "recovery accuracy (%), first step")
    beside = Block(headers, rows, "In the text beside it, at the last epoch [the paper's]")
    conditions = f"first step on symmetric noise r = {paper.settings.FIGURE4_NOISE_RATE:g}"
    caption = f"{CAPTION}; {images(study)}."
    return Figure(4, caption, "recovery", curves, conditions, beside, study=study)


if __name__ == "__main__":
    main(figure, __doc__)
