"""Figure 2: test accuracy with a high and a low learning rate on SN-CIFAR, cross entropy only."""

from chainer_jo import paper
from chainer_jo.commands import main
from chainer_jo.experiments.figure_runs import FIGURE2_NOISE_RATE, figure2_run
from chainer_jo.report import Study
from chainer_jo.report.curves import Curve
from chainer_jo.report.figure import Figure
from chainer_jo.report.words import images

CAPTION = "Test accuracy of cross entropy alone, at a high and at a low learning rate"


def figure(study: Study) -> Figure:
    rates = study.noise_rates or (FIGURE2_NOISE_RATE,)
    curves = [
        Curve(
            f"lr={lr:g}" + (f", r={rate:g}" if len(rates) > 1 else ""),
            [figure2_run(study, lr, trial, rate) for trial in study.figure_trials()],
            family=f"lr={lr:g}",
        )
        for lr in paper.settings.FIGURE2_LEARNING_RATES
        for rate in rates
    ]
    used = ", ".join(f"{rate:g}" for rate in rates)
    conditions = f"symmetric noise r = {used} (the paper names none)"
    return Figure(2, f"{CAPTION}; {images(study)}.", "test", curves, conditions, study=study)


if __name__ == "__main__":
    main(figure, __doc__)
