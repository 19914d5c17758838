"""Table 11: validation accuracy with other start and stop epochs of label updates, SN-CIFAR 0.7."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE11
from chainer_jo.reproduction.tables_and_figures.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE11)

if __name__ == "__main__":
    main(table, __doc__)
