"""Figure 1: the loop of training and relabelling, drawn."""

from chainer_jo.commands import main
from chainer_jo.report import Study
from chainer_jo.report.concept import Concept

CAPTION = (
    "The concept of our joint optimization framework. Noisy labels are reassigned to the "
    "probability output by CNNs. Network parameters and labels are alternatively updated for each "
    "epoch."
)


def figure(study: Study) -> Concept:
    return Concept(1, CAPTION)


if __name__ == "__main__":
    main(figure, __doc__)
