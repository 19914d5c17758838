"""Figure 4: label accuracy of soft and hard labels in the first step on SN-CIFAR at 0.7."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import of_the_paper, trained_on
from chainer_jo.reproduction.paper.settings import (
    FIGURE4_BEST_HARD,
    FIGURE4_BEST_TOP,
    FIGURE4_EPOCHS,
    FIGURE4_NOISE_RATE,
    FIGURE4_SOFT,
    FIGURE4_TOPS,
)
from chainer_jo.reproduction.tables_and_figures.cell import Cell, score
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure
from chainer_jo.reproduction.tables_and_figures.table import Block

CAPTION = (
    "Label accuracy of the first step with soft labels, and with hard labels of which all or "
    "the top k are updated per epoch"
)
#: Label rule, number of labels updated per epoch (None: all) and legend, by name.
RULES = {"soft": ("soft", None, "soft label"), "all": ("hard", None, "hard label, all")}
RULES |= {f"top{k}": ("top", k, f"top {k}") for k in FIGURE4_TOPS}
PRINTED = {"soft": FIGURE4_SOFT, f"top{FIGURE4_BEST_TOP}": FIGURE4_BEST_HARD}


def figure(study: Study) -> Figure:
    curves, rows = [], []
    for name, (rule, top, label) in RULES.items():
        if top and study.labels(top) != top:
            label += f" (here {study.labels(top)})"
        noise, first_step = ("symmetric", FIGURE4_NOISE_RATE), {"rule": rule, "top": top}
        runs = [
            study.joint(*noise, trial, epochs=FIGURE4_EPOCHS, **first_step)
            for trial in study.figure_trials()
        ]
        curves.append(Curve(label, [run.first_step for run in runs], keys={"rule": name}))
        cells = [
            Cell(
                {"rule": name},
                {"accuracy": a},
                runs,
                score("last", a),
                PRINTED.get(name, {}).get(a),
            )
            for a in ("test", "recovery")
        ]
        rows.append((label, cells))
    headers = ("test accuracy (%), second step", "label accuracy (%), first step")
    paper = " [the paper's number]" if of_the_paper(study.data) else ""
    side_table = Block(headers, rows, f"Numbers of the text, at the last epoch{paper}")
    conditions = f"first step on symmetric noise r = {FIGURE4_NOISE_RATE:g}"
    if study.of_the_preset and any("here" in curve.label for curve in curves):
        conditions += "; k is such that all epochs together update the paper's share of the labels"
    caption = f"{CAPTION}; {trained_on(study)}."
    return Figure(4, caption, "recovery", curves, conditions, side_table, study=study)


if __name__ == "__main__":
    main(figure, __doc__)
