"""Figure 3: training loss at different noise rates on SN-CIFAR, cross entropy only."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper.settings import FIGURE3_SCHEDULE as SCHEDULE
from chainer_jo.reproduction.paper.settings import noise_entropy
from chainer_jo.reproduction.paper.tables import TABLE1
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure

CAPTION = (
    "Training loss of cross entropy training by noise rate, at a high learning rate and after two "
    "learning rate drops"
)


def figure(study: Study) -> Figure:
    rates = study.noise_rates or TABLE1.keys("noise_rate")
    schedule = SCHEDULE.learning_rate, SCHEDULE.epochs, SCHEDULE.drops
    curves = [
        Curve(
            f"r={rate:g}",
            [study.plain("symmetric", rate, t, *schedule) for t in study.figure_trials()],
            keys={"noise_rate": rate},
            levels={noise_entropy(rate): study.epochs(SCHEDULE.drops[0])} if rate else {},
        )
        for rate in rates
    ]
    conditions = "symmetric noise; the paper states only r = 0.9"
    caption = f"{CAPTION}; {trained_on(study)}."
    levels = "entropy of the noise"
    return Figure(3, caption, "cross_entropy", curves, conditions, study=study, levels=levels)


if __name__ == "__main__":
    main(figure, __doc__)
