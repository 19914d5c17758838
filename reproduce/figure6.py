"""Figure 6: training loss in the second step on true, noisy, pseudo and updated labels."""

from chainer_jo.commands import main
from chainer_jo.report import Study
from chainer_jo.report.figure import Figure
from chainer_jo.report.label_curves import label_figure

CAPTION = (
    "The training loss curve with different labels. The training loss on the pseudo labels is "
    "lower than that on the symmetric noise labels even if the number of inaccurate labels is "
    "higher. Each of the training losses on the labels updated from different noisy labels follows "
    "the training loss on the ground-truth labels. This implies that the updated labels are "
    "completely optimized for the network."
)


def figure(study: Study) -> Figure:
    return label_figure(study, 6, CAPTION, "cross_entropy")


if __name__ == "__main__":
    main(figure, __doc__)
