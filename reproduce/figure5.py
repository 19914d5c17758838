"""Figure 5: test accuracy in the second step on true, noisy, pseudo and updated labels."""

from chainer_jo.commands import main
from chainer_jo.report import Study
from chainer_jo.report.figure import Figure
from chainer_jo.report.label_curves import label_figure

CAPTION = (
    "The test accuracy curve with different labels. The test accuracy on the pseudo labels is "
    "lower than that on the symmetric noise labels even if the number of inaccurate labels is "
    "lower. This trend remains if the labels are updated."
)


def figure(study: Study) -> Figure:
    return label_figure(study, 5, CAPTION, "test")


if __name__ == "__main__":
    main(figure, __doc__)
