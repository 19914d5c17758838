"""Table 11: validation accuracy with other start and stop epochs of label updates, SN-CIFAR 0.7."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import tables
from chainer_jo.report.sensitivity_table import sensitivity_table
from chainer_jo.report.table import Table


def table(study: Study) -> Table:
    return sensitivity_table(study, tables.TABLE11)


if __name__ == "__main__":
    main(table, __doc__)
