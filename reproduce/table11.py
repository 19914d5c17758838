"""Table 11: validation accuracy with other start and stop epochs of label updates, SN-CIFAR 0.7."""

from functools import partial

from chainer_jo.commands import main
from chainer_jo.paper.tables import TABLE11
from chainer_jo.report.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE11)

if __name__ == "__main__":
    main(table, __doc__)
