"""Figure 6: training loss in the second step on true, noisy, pseudo and updated labels."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.label_curves import label_figure

figure = partial(label_figure, number=6, what="Training loss", key="cross_entropy")

if __name__ == "__main__":
    main(figure, __doc__)
