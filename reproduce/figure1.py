"""Figure 1: the loop of training and relabelling, drawn."""

from chainer_jo.commands import main
from chainer_jo.report import Study
from chainer_jo.report.concept import Concept

CAPTION = (
    "The loop of the method: what the network says of an image, averaged over past epochs, becomes "
    "its label, and the network is trained on that; both in turn, epoch by epoch."
)


def figure(study: Study) -> Concept:
    return Concept(1, CAPTION)


if __name__ == "__main__":
    main(figure, __doc__)
