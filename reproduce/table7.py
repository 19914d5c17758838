"""Table 7: validation accuracy with different alpha, beta and learning rate, AN-CIFAR at 0.2."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE7
from chainer_jo.reproduction.tables_and_figures.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE7)

if __name__ == "__main__":
    main(table, __doc__)
