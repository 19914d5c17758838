"""Learning curves of Table 1: test accuracy by epoch, cross entropy and both steps of the method.

The paper prints best and last values only, so this figure has no counterpart there.
"""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import PAPER, Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper.tables import TABLE1
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure
from chainer_jo.reproduction.tables_and_figures.table_layouts import NOISE_RATE

CAPTION = (
    "Test accuracy by epoch of the runs of Table 1: cross entropy, the joint method's first step, "
    "and its second step on the final labels of the first"
)


class LearningCurves(Figure):
    """The figure after the paper's in lists of outputs."""

    name = "learning_curves"
    title = "Learning curves"


def figure(study: Study) -> Figure:
    rates = study.noise_rates or (NOISE_RATE,)
    curves = []
    for rate in rates:
        panel = f"r={rate:g}" if len(rates) > 1 else ""
        trials = study.comparison_trials()
        joint = [study.joint("symmetric", rate, trial) for trial in trials]
        plain = [study.baseline("cross_entropy", "symmetric", rate, t) for t in trials]
        shown = {
            "cross entropy": (plain, [("cross_entropy", "best"), ("cross_entropy", "last")]),
            "joint, first step": ([run.first_step for run in joint], []),
            "joint, second step": (joint, [("joint", "last")]),
        }
        epochs, _ = study.second_step_schedule()
        for label, (runs, printed) in shown.items():
            levels = {TABLE1.cells[*score, "test", rate]: epochs for score in printed}
            curves.append(
                Curve(
                    f"{label}, {panel}" if panel else label,
                    runs,
                    panel=panel,
                    levels=levels if study.preset is PAPER else {},
                )
            )
    used = ", ".join(f"{rate:g}" for rate in rates)
    conditions = f"symmetric noise r = {used}; the first step's learning rate is constant"
    caption = f"{CAPTION}; {trained_on(study)}."
    levels = "paper: best, last"
    return LearningCurves(9, caption, "test", curves, conditions, study=study, levels=levels)


if __name__ == "__main__":
    main(figure, __doc__)
