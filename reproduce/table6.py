"""Table 6: validation accuracy with different alpha, beta and learning rate, AN-CIFAR at 0.4."""

from functools import partial

from chainer_jo.commands import main
from chainer_jo.paper.tables import TABLE6
from chainer_jo.report.table_layouts import sensitivity_table

table = partial(sensitivity_table, printed=TABLE6)

if __name__ == "__main__":
    main(table, __doc__)
