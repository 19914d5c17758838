"""Table 13: how right the updated labels are, by their highest probability, SN-CIFAR at 0.7."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE13
from chainer_jo.reproduction.tables_and_figures.table_layouts import confidence_table

table = partial(confidence_table, printed=TABLE13, noise="symmetric", rate=0.7)

if __name__ == "__main__":
    main(table, __doc__)
