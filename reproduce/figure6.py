"""Figure 6: training loss in the second step on true, noisy, pseudo and updated labels."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.report.figure import Figure
from chainer_jo.report.label_curves import label_figure


def figure(study: Study) -> Figure:
    return label_figure(study, 6, "Training loss", "cross_entropy")


if __name__ == "__main__":
    main(figure, __doc__)
