"""Figure 3: training loss at different noise rates on SN-CIFAR, cross entropy only."""

from chainer_jo.commands import main
from chainer_jo.experiments.figure_runs import FIGURE3_NOISE_RATES, figure3_run
from chainer_jo.report import Study
from chainer_jo.report.curves import Curve
from chainer_jo.report.figure import Figure

CAPTION = (
    "The training loss curve with different noise rates. At the end of training with a low "
    "learning rate, the value of the training loss is close to 0 even if the error rate is 0.9. "
    "In contrast, in the early phase of training with a high learning rate, an increase in the "
    "noise rate increases the training loss."
)


def figure(study: Study) -> Figure:
    rates = study.noise_rates or FIGURE3_NOISE_RATES
    curves = [
        Curve(f"r={rate:g}", [figure3_run(study, rate, trial) for trial in study.figure_trials()])
        for rate in rates
    ]
    used = ", ".join(f"{rate:g}" for rate in rates)
    conditions = f"symmetric noise r = {used} (the paper names 0.9 alone); dotted: lr divided by 10"
    return Figure(3, CAPTION, "cross_entropy", curves, conditions)


if __name__ == "__main__":
    main(figure, __doc__)
