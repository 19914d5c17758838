"""Table 9: validation accuracy with different alpha, beta and learning rate, SN-CIFAR at 0.3."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE9
from chainer_jo.reproduction.tables_and_figures.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE9)

if __name__ == "__main__":
    main(table, __doc__)
