"""Figure 2: test accuracy with a high and a low learning rate on SN-CIFAR, cross entropy only."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper.settings import FIGURE2_EPOCHS, FIGURE2_LEARNING_RATES
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure

CAPTION = "Test accuracy of cross entropy training at a high and at a low learning rate"
#: Not stated in the paper.
NOISE_RATE = 0.5


def figure(study: Study) -> Figure:
    rates = study.noise_rates or (NOISE_RATE,)
    curves = [
        Curve(
            f"lr={lr:g}" + (f", r={rate:g}" if len(rates) > 1 else ""),
            [study.plain("symmetric", rate, t, lr, FIGURE2_EPOCHS) for t in study.figure_trials()],
            family=f"lr={lr:g}",
            keys={"learning_rate": lr} if rate == NOISE_RATE else {},
        )
        for lr in FIGURE2_LEARNING_RATES
        for rate in rates
    ]
    used = ", ".join(f"{rate:g}" for rate in rates)
    conditions = f"symmetric noise r = {used}; the paper states no noise rate"
    caption = f"{CAPTION}; {trained_on(study)}."
    return Figure(
        2, caption, "test", curves, conditions, study=study, moving_means=True, limits=(30, 80)
    )


if __name__ == "__main__":
    main(figure, __doc__)
