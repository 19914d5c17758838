"""Table 10: validation accuracy with other start and stop epochs of label updates, AN-CIFAR 0.4."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE10
from chainer_jo.reproduction.tables_and_figures.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE10)

if __name__ == "__main__":
    main(table, __doc__)
